import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { documentsOf, NOW, type TestClaim } from '../store/test-store.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { type StartedWeb, startWeb } from './start-web.ts';

let web: StartedWeb;
let browser: HttpBrowser;
let id: string;
beforeAll(async () => {
  web = await startWeb();
});
beforeEach(async () => {
  ({ browser, id } = await web.installed('Riverside Dental'));
});

const get = (path: string) => browser.get(`/instances/${id}${path}`);
const keyOf = (resource = 'contacts') => ({ instanceId: id, resource });

/** Copies documents, which a search finds. */
async function copy(...documents: (string | object)[]): Promise<TestClaim> {
  const texts = documents.map((one) => (typeof one === 'string' ? one : JSON.stringify(one)));
  const list = await web.store.copy(texts, keyOf());
  await web.store.index(keyOf());
  return list;
}

const people = (count: number) =>
  Array.from({ length: count }, (_, n) => ({ id: `crd_${n}`, name: `Person no${n}` }));

function titles(body: string): string[] {
  return [...body.matchAll(/<td class="what"><a [^>]*>([^<]*)</g)].map(([, title = '']) => title);
}

describe('browsing', () => {
  it('shows fifty a page, with ways on and back, and from past the end to the last page', async () => {
    await copy(...people(120));
    const first = await get('/contacts');
    expect(titles(first.body)).toHaveLength(50);
    expect(first.body).toContain('120 records');
    expect(first.body).toContain(`href="/instances/${id}/contacts?page=2"`);
    expect(first.body).not.toContain('rel="prev"');
    const last = await get('/contacts?page=9999');
    expect(last.url.search).toBe('?page=3');
    expect(last.body).toContain('Page 3 of 3');
    expect(titles(last.body)).toHaveLength(20);
    expect(last.body).not.toContain('rel="next"');
    expect((await get('/contacts?q=no1&page=3')).url.search).toBe('?q=no1');
  });

  it('searches, keeps the search on the way, and downloads what it found', async () => {
    await copy(...people(120));
    const page = await get('/contacts?q=Person+no1');
    expect(page.body).toContain('31 records');
    expect(page.body).not.toContain('searchable');
    expect(page.form(`/instances/${id}/contacts`).fields.get('q')).toBe('Person no1');
    for (const end of ['ndjson', 'csv'])
      expect(page.body).toContain(`contacts.${end}?q=Person+no1" download`);
    const found = (await get('/contacts.ndjson?q=no11')).body.match(/no\d+/g);
    expect(found).toEqual([
      'no11',
      'no110',
      'no111',
      'no112',
      'no113',
      'no114',
      'no115',
      'no116',
      'no117',
      'no118',
      'no119',
    ]);
    const nothing = await get('/contacts?q=%3Cb%3Ezzz');
    expect(nothing.body).toContain('No record has these words');
    expect(nothing.body).toContain('&lt;b&gt;zzz');
  });

  it('says when not everything can be found yet, and when words were left out', async () => {
    await web.store.copy(documentsOf(1_234), keyOf());
    expect((await get('/contacts?q=x')).body).toContain(
      '1,234 newly copied or changed records are not searchable yet',
    );
    expect((await get('/contacts')).body).not.toContain('searchable');
    expect((await get('/contacts?q=a+b+c+d+e+f+g+h+i')).body).toContain('only the first 8 words');
  });

  it('promises no records of a company that is disconnected', async () => {
    const empty = async () => (await get('/contacts')).body;
    expect(await empty()).toContain('Nothing has been copied yet');
    expect(await empty()).not.toContain('Not complete yet');
    await copy();
    expect(await empty()).toContain('The service has no contacts that the app may see.');
    const fields = { delete_data: 'yes', company_name: 'Riverside Dental' };
    await browser.post(`/instances/${id}/disconnect`, fields);
    expect(await empty()).toContain('This company’s records are deleted');
  });

  it('does not know other resources', async () => {
    for (const name of ['constructor', 'contacts.json', '%E0%A4%A']) {
      expect((await get(`/${name}`)).status).toBeGreaterThanOrEqual(400);
    }
    for (const name of ['tags', 'tags.ndjson', 'changes/tags.ndjson']) {
      expect((await get(`/${name}`)).status, name).toBe(404);
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
    await copy(document);
    const list = await get('/contacts');
    const address = `/instances/${id}/contacts?record=a%2Fb%3Fc`;
    expect(list.body).toContain(`href="${address}" dir="auto">&lt;script&gt;Ada`);
    const page = await get('/contacts/a%2Fb%3Fc');
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
    const documents = ['{"id":"cnv_1","subject":"Order 7"}', '{"id":"cnv_2","x":1}'];
    await web.store.copy(documents, keyOf('conversations'));
    expect(titles((await get('/conversations')).body)).toEqual(['Order 7', 'cnv_2']);
  });

  it('is handed to the handler again, or erased, by buttons that know its id in the copy', async () => {
    await copy('{"id":7}');
    const path = '/contacts?record=%237';
    const press = async (action: string) =>
      browser.submit((await get(path)).form(`/instances/${id}/contacts/${action}`));
    const noted = () => web.store.actions.list({ instanceId: id, limit: 1 });
    expect((await press('replay')).body).toContain('The handler gets the records again.');
    expect(await noted()).toMatchObject([{ action: 'replay', record: '#7' }]);
    expect((await press('erase')).body).toContain('The record is erased.');
    // Its id is personal data, too.
    expect(await noted()).toMatchObject([{ action: 'erase', record: null }]);
    expect((await get(path)).status).toBe(404);
  });

  it('says what there is of it', async () => {
    const list = await copy('{"id":"here"}', '{"id":"gone"}', `{"id":"large","x":"${'x'.repeat(100_000)}"}`);
    const body = async (record: string) => (await get(`/contacts/${record}`)).body;
    const set = (values: object) =>
      web.store.db.transact((tx) =>
        tx
          .updateTable('records')
          .set(values)
          .where('list', '=', list.list)
          .where('external_id', '=', 'gone')
          .execute(),
      );
    expect(await body('here')).toMatch(/Raw JSON.*Erase this record/s);
    expect(await body('here')).not.toMatch(/no longer has this record|content was erased|Only its first/);
    await set({ deleted_at: NOW });
    expect(await body('gone')).toContain('no longer has this record');
    expect(await body('gone')).not.toContain('content was erased');
    await set({ document: null });
    expect(await body('gone')).toContain('Its content was erased');
    expect(await body('gone')).not.toMatch(/Raw JSON|Erase this record/);
    expect(await body('large')).toMatch(/Only its first 100,000 characters are shown.*contacts\.ndjson"/s);
  });

  it('is 404 when it never was, with the way back', async () => {
    const missing = await get('/contacts/crd_2');
    expect(missing.status).toBe(404);
    expect(missing.body).toContain('No such record');
    expect(missing.body).toContain(`href="/instances/${id}/contacts">Back to the list`);
    expect(missing.body).not.toContain('another browser');
  });
});

describe('the download', () => {
  it('has every document as it came, a line each', async () => {
    expect(await get('/contacts.ndjson')).toMatchObject({ status: 200, body: '' });
    const documents = ['{"id":"1","n":1.0}', '{"id":"2","u":"\\u00e9 é 山"}', '{"id":"3"}'];
    await copy(...documents);
    const answer = await get('/contacts.ndjson');
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/);
    const disposition = 'attachment; filename="riverside-dental-contacts.ndjson"';
    expect(answer.headers.get('content-disposition')).toBe(disposition);
    expect(answer.body).toBe(documents.map((text) => `${text}\n`).join(''));
  });

  it('comes as CSV, too, in which no cell is a formula', async () => {
    const handles = [{ handle: 'a@b.c' }, { handle: '+44 1' }];
    await copy(
      { id: 'crd_0', name: 'Ada, "Countess"', handles, created_at: '2025-06-10T12:00:00Z' },
      { id: 'crd_1', name: '=HYPERLINK("x")', handles: [], created_at: 1_749_556_800 },
      { id: 'crd_2', name: 'two\nlines' },
    );
    const answer = await get('/contacts.csv');
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
    expect((await get('/contacts.csv?q=Ada')).body.split('\r\n')).toHaveLength(3);
  });

  it('says how complete the copy is, and a download of a part does so in its name', async () => {
    const textOf = async (path: string) => (await get(`/contacts${path}`)).text();
    const nameOf = async () => (await get('/contacts.csv')).headers.get('content-disposition');
    const claim = await web.store.claimRun(keyOf());
    await web.store.write(claim, ['{"id":"crd_0"}'], { next: '/next' });
    for (const path of ['', '/crd_0']) expect(await textOf(path)).toContain('Not complete yet');
    expect(await nameOf()).toContain('-contacts-incomplete.csv');
    await web.store.finish(claim);
    for (const path of ['', '/crd_0']) {
      expect(await textOf(path)).toContain('Complete as of 1 Mar 2026, 12:00 UTC');
    }
    expect(await nameOf()).toContain('-contacts.csv');
  });

  it('reads no status, which takes many queries, for a list or a download', async () => {
    await copy(...people(1));
    web.deps.status.read = () => expect.unreachable();
    for (const path of ['', '.ndjson', '.csv', '?q=Person']) {
      expect((await get(`/contacts${path}`)).status).toBe(200);
    }
    delete (web.deps.status as { read?: unknown }).read;
  });

  it('writes ids and large numbers as the service did', async () => {
    await copy('{"id":9007199254740993,"name":12345678901234567890}', '{"id":7,"name":1.5}', '{"id":"#a"}');
    const { body } = await get('/contacts.csv');
    const cells = body.split('\r\n').map((line) => line.split(',').slice(0, 2));
    expect(cells.slice(1, 4)).toEqual([
      ['"9007199254740993"', '"12345678901234567890"'],
      ['"7"', '"1.5"'],
      ['"#a"', ''],
    ]);
    const list = await get('/contacts');
    const page = await get(`/contacts?record=${encodeURIComponent('#9007199254740993')}`);
    for (const { body } of [list, page]) expect(body).toMatch(/<code>9007199254740993<\/code>/);
    expect(titles(list.body)).toEqual(['12345678901234567890', '1.5', '#a']);
    // Buttons name the record as the copy does.
    const { fields } = page.form(`/instances/${id}/contacts/erase`);
    expect(fields.get('id')).toBe('#9007199254740993');
  });
});

describe('a large download', () => {
  /** More than the two ends of a connection hold by themselves. */
  const LARGE = Array.from({ length: 4_000 }, (_, n) => `{"id":"${n}","x":"${'x'.repeat(8_000)}"}`);
  const errors = () => web.log.lines.filter(({ level }) => level === 'error');
  const cookie = () => `partner_app.sid=${browser.cookies()['partner_app.sid']}`;
  const path = () => `/instances/${id}/contacts.ndjson`;

  let copied: { browser: HttpBrowser; id: string } | undefined;
  beforeEach(async () => {
    if (copied === undefined) await web.store.copy(LARGE, keyOf());
    copied ??= { browser, id };
    ({ browser, id } = copied);
    web.log.lines.length = 0;
  });

  type Stream = typeof web.store.records.stream;
  const streamOf: { real?: Stream } = {};
  /** Replaces what the store gives. */
  function give(stream: (real: ReturnType<Stream>) => ReturnType<Stream>) {
    const { records } = web.store;
    streamOf.real ??= records.stream.bind(records);
    const { real } = streamOf;
    records.stream = (...of) => stream(real(...of));
  }
  afterEach(() => give((real) => real));

  /** Begins a download in a browser that takes nothing of its answer. */
  async function begin() {
    const download = request(web.url + path(), { headers: { cookie: cookie() } }).end();
    const [answer] = await once(download, 'response');
    answer.pause();
    return { status: answer.statusCode, answer, download };
  }

  it.each(['GET', 'HEAD'])('is refused over HTTP/1.0: %s', async (method) => {
    const socket = connect(Number(new URL(web.url).port), '127.0.0.1');
    const answer = text(socket);
    socket.write(`${method} ${path()} HTTP/1.0\r\nCookie: ${cookie()}\r\n\r\n`);
    const [head = '', body = ''] = (await answer).split('\r\n\r\n');
    expect(head).toMatch(/^HTTP\/1\.1 505 /);
    if (method === 'GET') expect(body).toContain('Downloads need HTTP/1.1');
    expect(JSON.stringify(errors())).toContain('proxy_http_version 1.1;');
  });

  it('reads no further than the client takes, and stops when the client goes', async () => {
    let taken = 0;
    let stopped = false;
    give(async function* (real) {
      try {
        for await (const record of real) {
          taken += 1;
          yield record;
        }
      } finally {
        stopped = true;
      }
    });
    const { download } = await begin();
    let before = -1;
    await waitFor(() => {
      const still = taken === before;
      before = taken;
      return still;
    }, 'the stream to stand still');
    expect(stopped).toBe(false);
    expect(taken).toBeLessThan(LARGE.length);
    download.destroy();
    await waitFor(() => stopped, 'the stream to be stopped');
    await waitFor(() => web.log.lines.some((line) => line.aborted === true), 'the log line');
    expect(errors()).toEqual([]);
  });

  it('breaks off, rather than ends, when the store fails on the way', async () => {
    give(async function* (real) {
      for (let n = 0; n < 100; n++) yield (await real.next()).value;
      throw new Error('the store is broken');
    });
    await expect(browser.get(path())).rejects.toThrow();
    await waitFor(() => errors().length > 0);
  });

  it('breaks off when the copy is deleted meanwhile, which is no error', async () => {
    const { answer } = await begin();
    copied = undefined;
    await web.deps.control.disconnect(id, { deleteData: true });
    await expect(text(answer)).rejects.toThrow();
    await waitFor(() => web.log.lines.some(({ msg }) => msg === 'download ended early'));
    expect(errors()).toEqual([]);
  });

  it('of a client that has gone before the first line is no error', async () => {
    const gone = Promise.withResolvers<void>();
    const asked = Promise.withResolvers<void>();
    give(async function* (real) {
      asked.resolve();
      await gone.promise;
      yield* real;
    });
    const download = request(web.url + path(), { headers: { cookie: cookie() } }).end();
    download.on('error', () => undefined);
    await asked.promise;
    download.destroy();
    await waitFor(() => web.log.lines.some((line) => line.aborted === true));
    gone.resolve();
    await waitFor(() => web.log.lines.some((line) => line.msg === 'download ended early'));
    expect(errors()).toEqual([]);
  });

  it('comes forty at a time; each leaves its place', async () => {
    const underWay: Awaited<ReturnType<typeof begin>>[] = [];
    for (let n = 0; n < 40; n++) underWay.push(await begin());
    expect(underWay.map(({ status }) => status)).toEqual(Array(40).fill(200));
    const refused = await browser.get(path());
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '30']);
    for (const { download } of underWay) download.destroy();
    await waitFor(() => web.log.lines.filter((line) => line.aborted === true).length === 40);
    expect((await browser.get(path())).status).toBe(200);
  });

  it('that fails before its first line is an error, and leaves its place', async () => {
    give(async function* () {
      yield* [];
      throw new Error('the store is broken');
    });
    for (let n = 0; n < 50; n++) {
      const { status, body } = await browser.get(path());
      expect([status, body.includes('the store is broken')]).toEqual([500, false]);
    }
  });
});

describe('the change feed', () => {
  const ask = (query = '') => get(`/changes/contacts.ndjson${query}`);

  it('has the entries in their order, behind a number, as many as are asked for', async () => {
    const list = await copy(...people(4));
    const seqs = (await web.store.feed(list.list)).map(({ seq }) => seq);
    const seqsOf = async (query?: string) =>
      (await ask(query)).body.split('\n').flatMap((line) => (line === '' ? [] : JSON.parse(line).seq));
    expect(await seqsOf()).toEqual(seqs);
    expect(await seqsOf(`?after=${seqs[0]}&limit=2`)).toEqual(seqs.slice(1, 3));
    expect(await seqsOf('?limit=0')).toEqual([]);
    const answer = await ask(`?after=${seqs[3]}`);
    expect([answer.status, answer.body]).toEqual([200, '']);
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/);
  });

  const large = `after=${'9'.repeat(20)}`;
  const others = ['after=-1', 'after=x', 'after=', 'limit=1.5', 'limit=1&limit=2'];
  it.each([...others, large])('refuses %s, and says what is wrong', async (query) => {
    const answer = await ask(`?${query}`);
    expect(answer.status).toBe(400);
    const message = expect.stringMatching(/^“(after|limit)” must be a whole number, 0 or more\.$/);
    expect(answer.json()).toMatchObject({ _error: { message } });
  });
});
