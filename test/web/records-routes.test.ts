import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { CopyRemovedError, type StoredRecord } from '../../src/store/records.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { HANDLER, instanceStatus, listStatus, NOW } from './status-fixtures.ts';

let web: StartedWeb;
let browser: HttpBrowser;
beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
  await install(browser);
});

function record(id: string, document: string): StoredRecord {
  return { id, document, isCut: false, updatedAt: NOW, deletedAt: null };
}

function streamed(document: string) {
  return { id: 'crd_1', document, updatedAt: NOW };
}

/** The header of a client of one's own that has the browser's session. */
function cookie(): string {
  return `partner_app.sid=${browser.cookies()['partner_app.sid']}`;
}

function fill(count: number): void {
  const records = Array.from({ length: count }, (_, i) =>
    record(`crd_${i}`, JSON.stringify({ id: `crd_${i}`, name: `Person ${i}` })),
  );
  web.domain.records.set('ins_1/contacts', records);
}

function titles(body: string): string[] {
  return [...body.matchAll(/<td class="what"><a [^>]*>([^<]*)</g)].map(([, title = '']) => title);
}

describe('browsing', () => {
  it('shows fifty a page, with ways on and back', async () => {
    fill(120);
    const first = await browser.get('/instances/ins_1/contacts');
    expect(titles(first.body)).toHaveLength(50);
    expect(first.body).toContain('120 records');
    expect(first.body).toContain('href="/instances/ins_1/contacts?page=2"');
    expect(first.body).not.toContain('rel="prev"');
    const last = await browser.get('/instances/ins_1/contacts?page=3');
    expect(titles(last.body)).toHaveLength(20);
    expect(last.body).not.toContain('rel="next"');
  });

  it('searches, and keeps the search on the way', async () => {
    fill(120);
    const page = await browser.get('/instances/ins_1/contacts?q=Person+1');
    expect(page.body).toContain('31 records');
    expect(page.form('/instances/ins_1/contacts').fields.get('q')).toBe('Person 1');
    const nothing = await browser.get('/instances/ins_1/contacts?q=%3Cb%3Ezzz');
    expect(nothing.body).toContain('No record has these words');
    expect(nothing.body).toContain('&lt;b&gt;zzz');
  });

  it('says when a search found more than it counted, and when not everything can be found yet', async () => {
    fill(120);
    const page = async (query: string) => (await browser.get(`/instances/ins_1/contacts${query}`)).body;
    expect(await page('?q=Person')).not.toContain('searchable');
    web.domain.counts = { hasMore: true, pending: 1_234, isShortened: false };
    expect(await page('?q=Person')).toContain('more than 120 records');
    expect(await page('?q=Person')).toContain('1,234 newly copied or changed records are not searchable yet');
    expect(await page('')).not.toContain('searchable');
    web.domain.counts = { hasMore: false, pending: 1, isShortened: true };
    expect(await page('?q=nothing')).toContain('1 newly copied or changed record is not searchable yet');
    expect(await page('?q=many+words')).toContain('The search uses only the first 8 words');
  });

  it('leads from past the end to the last page, of a search too', async () => {
    fill(60);
    const page = await browser.get('/instances/ins_1/contacts?page=9999');
    expect(page.url.search).toBe('?page=2');
    expect(page.body).toContain('Page 2 of 2');
    expect(titles(page.body)).toHaveLength(10);
    expect((await browser.get('/instances/ins_1/contacts?q=Person+1&page=3')).url.search).toBe('?q=Person+1');
    fill(0);
    expect((await browser.get('/instances/ins_1/contacts?page=2')).url.search).toBe('');
  });

  it('promises no records of a company that is disconnected', async () => {
    const empty = async () => (await browser.get('/instances/ins_1/contacts')).body;
    expect(await empty()).toContain('The service has no contacts that the app may see.');
    const contacts = listStatus({ full_at: null, checked_at: null });
    web.domain.instances.set('ins_1', instanceStatus({ resources: { contacts } }));
    expect(await empty()).toContain('Nothing has been copied yet');
    expect(await empty()).not.toContain('Not complete yet');
    web.domain.instances.set('ins_1', instanceStatus({ status: 'disconnected' }));
    expect(await empty()).toContain('This company’s records are deleted');
  });

  it('does not know other resources', async () => {
    for (const name of ['constructor', 'contacts.json', '%E0%A4%A']) {
      expect((await browser.get(`/instances/ins_1/${name}`)).status).toBeGreaterThanOrEqual(400);
    }
    for (const name of ['tags', 'tags.ndjson', 'changes/tags.ndjson']) {
      expect((await browser.get(`/instances/ins_1/${name}`)).status, name).toBe(404);
    }
  });
});

describe('a record', () => {
  it('shows its columns, dates as dates, and the document as it came', async () => {
    const contact = {
      id: 'a/b?c',
      name: '<script>Ada',
      handles: [{ handle: 'ada@example.com' }, { handle: '+44 1' }],
      created_at: 1_749_556_800.5,
      n: 1,
    };
    const document = JSON.stringify(contact).replace('"n":1', '"n":12345678901234567890');
    web.domain.records.set('ins_1/contacts', [record('a/b?c', document)]);
    const list = await browser.get('/instances/ins_1/contacts');
    const address = '/instances/ins_1/contacts?record=a%2Fb%3Fc';
    expect(list.body).toContain(`href="${address}" dir="auto">&lt;script&gt;Ada`);
    const page = await browser.get('/instances/ins_1/contacts/a%2Fb%3Fc');
    for (const { body } of [list, page]) {
      expect(body).toContain('ada@example.com, +44 1');
      expect(body).toContain('<time datetime="2025-06-10T12:00:00.500Z">10 Jun 2025, 12:00 UTC</time>');
      expect(body).not.toContain('<script>Ada');
    }
    expect(page.text()).toContain(document);
    expect(page.body).toContain(`href="${address}&amp;raw">Raw JSON`);
    const raw = await browser.get(`${address}&raw`);
    expect(raw.headers.get('content-type')).toBe('application/json; charset=utf-8');
    expect(raw.body).toBe(document);
  });

  it('is called by what usually names a thing, or its id, where no column says so', async () => {
    const conversations = [record('cnv_1', '{"subject":"Order 7"}'), record('cnv_2', '{"x":1}')];
    web.domain.records.set('ins_1/conversations', conversations);
    expect(titles((await browser.get('/instances/ins_1/conversations')).body)).toEqual(['Order 7', 'cnv_2']);
  });

  it('is erased by a button that asks first', async () => {
    web.domain.records.set('ins_1/contacts', [record('#7', '{"id":7}')]);
    const page = await browser.get('/instances/ins_1/contacts?record=%237');
    const done = await browser.submit(page.form('/instances/ins_1/contacts/erase'));
    expect(web.domain.calls).toContain('erase ins_1 contacts #7');
    expect(done.body).toContain('The record is erased.');
    // Its id is personal data, too.
    expect(web.domain.noted).toEqual([expect.objectContaining({ action: 'erase', record: null })]);
  });

  const DELETED = /no longer has this record/;
  const ERASED = /Its content was erased/;
  const CUT = /Only its first 17 characters are shown.*href="\/instances\/ins_1\/contacts\.ndjson"/s;
  it.each<[string, Partial<StoredRecord>, RegExp[], RegExp[]]>([
    ['all there', {}, [/Raw JSON/, /Erase this record/], [DELETED, ERASED, /Only its first/]],
    ['deleted at the service', { deletedAt: NOW }, [DELETED], [ERASED]],
    ['erased', { document: null, deletedAt: NOW }, [ERASED], [/Raw JSON/, /Erase this record/]],
    ['large, and so cut', { document: '{"id":"crd_1","n"', isCut: true }, [CUT], [DELETED]],
  ])('says what there is of it: %s', async (_what, changes, said, unsaid) => {
    web.domain.records.set('ins_1/contacts', [{ ...record('crd_1', '{}'), ...changes }]);
    const { body } = await browser.get('/instances/ins_1/contacts/crd_1');
    for (const words of said) expect(body).toMatch(words);
    for (const words of unsaid) expect(body).not.toMatch(words);
  });

  it('is handed to the handler again by a button, under the id that the copy knows', async () => {
    web.domain.records.set('ins_1/contacts', [record('#7', '{"id":7}')]);
    const path = '/instances/ins_1/contacts?record=%237';
    expect((await browser.get(path)).body).not.toContain('Hand to the handler again');
    const resources = { contacts: listStatus({ handler: HANDLER }) };
    web.domain.instances.set('ins_1', instanceStatus({ resources }));
    const form = (await browser.get(path)).form('/instances/ins_1/contacts/replay');
    const page = await browser.submit(form);
    expect(web.domain.calls).toContain('replay ins_1 contacts #7');
    expect(page.body).toContain('The handler gets the records again.');
  });

  it('is 404 when it never was, with the way back', async () => {
    const missing = await browser.get('/instances/ins_1/contacts/crd_2');
    expect(missing.status).toBe(404);
    expect(missing.body).toContain('No such record');
    expect(missing.body).toContain('href="/instances/ins_1/contacts">Back to the list');
    expect(missing.body).not.toContain('another browser');
  });
});

describe('the download', () => {
  const path = '/instances/ins_1/contacts.ndjson';

  const errors = () => web.log.lines.filter(({ level }) => level === 'error');

  /** Begins a download in a browser that takes nothing of its answer. */
  async function begin() {
    const download = request(web.url + path, { headers: { cookie: cookie() } }).end();
    const [answer] = await once(download, 'response');
    answer.pause();
    return { status: answer.statusCode, download };
  }

  it('has every document as it came, a line each', async () => {
    expect(await browser.get(path)).toMatchObject({ status: 200, body: '' });
    const documents = ['{"id":"1","n":1.0}', '{"id":"2","u":"\\u00e9 é 山"}', '{"id":"3"}'];
    const records = documents.map((document, i) => record(String(i), document));
    web.domain.records.set('ins_1/contacts', records);
    const answer = await browser.get(path);
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/);
    const disposition = 'attachment; filename="riverside-dental-contacts.ndjson"';
    expect(answer.headers.get('content-disposition')).toBe(disposition);
    expect(answer.body).toBe(documents.map((text) => `${text}\n`).join(''));
  });

  it('is of what a search found, if that is asked for', async () => {
    fill(12);
    const names = (await browser.get(`${path}?q=Person+1`)).body.match(/Person \d+/g);
    expect(names).toEqual(['Person 1', 'Person 10', 'Person 11']);
    const page = await browser.get('/instances/ins_1/contacts?q=Person+1');
    for (const end of ['ndjson', 'csv']) expect(page.body).toContain(`contacts.${end}?q=Person+1" download`);
  });

  it('comes as CSV, too, in which no cell is a formula', async () => {
    const handles = [{ handle: 'a@b.c' }, { handle: '+44 1' }];
    const contacts = [
      { name: 'Ada, "Countess"', handles, created_at: '2025-06-10T12:00:00Z' },
      { name: '=HYPERLINK("x")', handles: [], created_at: 1_749_556_800 },
      { name: 'two\nlines' },
    ];
    const records = contacts.map((contact, i) => record(`crd_${i}`, JSON.stringify(contact)));
    web.domain.records.set('ins_1/contacts', records);
    const answer = await browser.get('/instances/ins_1/contacts.csv');
    expect(answer.headers.get('content-type')).toBe('text/csv; charset=utf-8');
    expect(answer.headers.get('content-disposition')).toContain('filename="riverside-dental-contacts.csv"');
    expect(answer.body).toBe(
      [
        '"Id","Name","Handles","Created"',
        '"crd_0","Ada, ""Countess""","a@b.c, +44 1","2025-06-10T12:00:00.000Z"',
        `"crd_1","'=HYPERLINK(""x"")",,"2025-06-10T12:00:00.000Z"`,
        '"crd_2","two\nlines",,',
        '',
      ].join('\r\n'),
    );
    expect((await browser.get('/instances/ins_1/contacts.csv?q=Ada')).body.split('\r\n')).toHaveLength(3);
  });

  it('says how complete the copy is, and a download of a part does so in its name', async () => {
    fill(1);
    const textOf = async (path: string) => (await browser.get(`/instances/ins_1/contacts${path}`)).text();
    const nameOf = async () =>
      (await browser.get('/instances/ins_1/contacts.csv')).headers.get('content-disposition');
    for (const path of ['', '/crd_0']) {
      expect(await textOf(path)).toMatch(/Complete as of 10 Jun 2025, 11:55 UTC . checked/);
    }
    expect(await nameOf()).toContain('-contacts.csv');
    const contacts = listStatus({ full_at: null, checked_at: null });
    web.domain.instances.set('ins_1', instanceStatus({ resources: { contacts } }));
    for (const path of ['', '/crd_0']) expect(await textOf(path)).toContain('Not complete yet');
    expect(await nameOf()).toContain('-contacts-incomplete.csv');
  });

  it('reads no status, which takes many queries, for a list or a download', async () => {
    fill(1);
    web.domain.status.read = () => expect.unreachable();
    for (const path of ['', '.ndjson', '.csv', '?q=Person']) {
      expect((await browser.get(`/instances/ins_1/contacts${path}`)).status).toBe(200);
    }
  });

  it('writes ids and large numbers as the service did', async () => {
    const id = '#9007199254740993';
    web.domain.records.set('ins_1/contacts', [
      record(id, '{"id":9007199254740993,"name":12345678901234567890}'),
      record('#7', '{"id":7,"name":1.5}'),
      record('##a', '{"id":"#a"}'),
    ]);
    const { body } = await browser.get('/instances/ins_1/contacts.csv');
    const cells = body.split('\r\n').map((line) => line.split(',').slice(0, 2));
    expect(cells.slice(1, 4)).toEqual([
      ['"9007199254740993"', '"12345678901234567890"'],
      ['"7"', '"1.5"'],
      ['"#a"', ''],
    ]);
    const list = await browser.get('/instances/ins_1/contacts');
    const page = await browser.get(`/instances/ins_1/contacts?record=${encodeURIComponent(id)}`);
    for (const { body } of [list, page]) expect(body).toMatch(/<code>9007199254740993<\/code>/);
    expect(titles(list.body)).toEqual(['12345678901234567890', '1.5', '#a']);
    // Buttons name the record as the copy does.
    expect(page.form('/instances/ins_1/contacts/erase').fields.get('id')).toBe(id);
  });

  it.each(['GET', 'HEAD'])('is refused over HTTP/1.0: %s', async (method) => {
    web.domain.stream = async function* () {
      yield streamed('x'.repeat(100_000));
      throw new CopyRemovedError();
    };
    const socket = connect(Number(new URL(web.url).port), '127.0.0.1');
    const answer = text(socket);
    socket.write(`${method} ${path} HTTP/1.0\r\nCookie: ${cookie()}\r\n\r\n`);
    const [head = '', body = ''] = (await answer).split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 505 /);
    if (method === 'GET') expect(body).toContain('Downloads need HTTP/1.1');
    expect(JSON.stringify(errors())).toContain('proxy_http_version 1.1;');
  });

  it('reads no further than the client takes, and stops when the client goes', async () => {
    let taken = 0;
    let stopped = false;
    web.domain.stream = async function* () {
      try {
        for (;;) {
          taken += 1;
          yield streamed(`{"n":${taken},"x":"${'x'.repeat(10_000)}"}`);
        }
      } finally {
        stopped = true;
      }
    };
    const { download } = await begin();
    let before = -1;
    await waitFor(() => {
      const still = taken === before;
      before = taken;
      return still;
    }, 'the stream to stand still');
    expect(stopped).toBe(false);
    // What the two ends of a connection hold by themselves is far less.
    expect(taken * 10_000).toBeLessThan(50_000_000);
    download.destroy();
    await waitFor(() => stopped, 'the stream to be stopped');
    await waitFor(() => web.log.lines.some((line) => line.aborted === true), 'the log line');
    expect(errors()).toEqual([]);
  });

  it.each([
    ['the store fails on the way', 100_000, new Error('the store is broken'), 'error'],
    ['the copy is deleted meanwhile, which is no error', 100_000, new CopyRemovedError(), 'info'],
    ['it is deleted before anything was sent', 1, new CopyRemovedError(), 'info'],
  ])('breaks off, rather than ends, when %s', async (_what, length, error, level) => {
    web.domain.stream = async function* () {
      yield streamed('x'.repeat(length));
      throw error;
    };
    await expect(browser.get(path)).rejects.toThrow();
    if (level === 'info')
      await waitFor(() => web.log.lines.some(({ msg }) => msg === 'download ended early'));
    expect(errors().length > 0).toBe(level === 'error');
  });

  it('of a client that has gone before the first line is no error', async () => {
    const { promise: gone, resolve: goOn } = Promise.withResolvers<void>();
    let isAsked = false;
    web.domain.stream = async function* () {
      isAsked = true;
      await gone;
      yield streamed('x');
    };
    const download = request(web.url + path, { headers: { cookie: cookie() } }).end();
    download.on('error', () => undefined);
    await waitFor(() => isAsked);
    download.destroy();
    await waitFor(() => web.log.lines.some((line) => line.aborted === true));
    goOn();
    await waitFor(() => web.log.lines.some((line) => line.msg === 'download ended early'));
    expect(errors()).toEqual([]);
  });

  it('comes forty at a time; each leaves its place', async () => {
    web.domain.stream = async function* () {
      for (;;) yield streamed('x'.repeat(100_000));
    };
    const underWay: Awaited<ReturnType<typeof begin>>[] = [];
    for (let n = 0; n < 40; n++) underWay.push(await begin());
    expect(underWay.map(({ status }) => status)).toEqual(Array(40).fill(200));
    const refused = await browser.get(path);
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '30']);
    for (const { download } of underWay) download.destroy();
    await waitFor(() => web.log.lines.filter((line) => line.aborted === true).length === 40);
    web.domain.stream = async function* () {
      yield streamed('x');
    };
    expect((await browser.get(path)).status).toBe(200);
  });

  it('that fails before its first line is an error, and leaves its place', async () => {
    web.domain.stream = async function* () {
      yield* [];
      throw new Error('the store is broken');
    };
    for (let n = 0; n < 50; n++) {
      const { status, body } = await browser.get(path);
      expect([status, body.includes('the store is broken')]).toEqual([500, false]);
    }
  });
});

describe('the change feed', () => {
  const path = '/instances/ins_1/changes/contacts.ndjson';

  it('has the entries in their order, behind a number, as many as are asked for', async () => {
    web.domain.feed.push('{"seq":1}', '{"seq":2}', '{"seq":3}', '{"seq":4}');
    const ask = async (query: string) => (await browser.get(path + query)).body;
    expect(await ask('')).toBe('{"seq":1}\n{"seq":2}\n{"seq":3}\n{"seq":4}\n');
    expect(await ask('?after=1&limit=2')).toBe('{"seq":2}\n{"seq":3}\n');
    expect(await ask('?limit=0')).toBe('');
    const answer = await browser.get(`${path}?after=4`);
    expect([answer.status, answer.body]).toEqual([200, '']);
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/);
    expect(web.domain.calls).toContain('feed ins_1 contacts 0 Infinity');
  });

  const large = `after=${'9'.repeat(20)}`;
  const others = ['after=-1', 'after=x', 'after=', 'limit=1.5', 'limit=1&limit=2'];
  it.each([...others, large])('refuses %s, and says what is wrong', async (query) => {
    const answer = await browser.get(`${path}?${query}`);
    expect(answer.status).toBe(400);
    const message = expect.stringMatching(/^“(after|limit)” must be a whole number, 0 or more\.$/);
    expect(answer.json()).toMatchObject({ _error: { message } });
  });
});
