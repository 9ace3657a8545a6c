import { once } from 'node:events';
import { request } from 'node:http';
import { connect } from 'node:net';
import { text } from 'node:stream/consumers';
import { beforeEach, describe, expect, it } from 'vitest';
import { CopyRemovedError, type StoredRecord } from '../../src/store/records.ts';
import type { HttpBrowser } from '../support/http-browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';
import { instanceStatus, listStatus, NOW } from './status-fixtures.ts';

const SESSION_COOKIE = 'partner_app.sid';

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

  it.each(['page=-1', 'page=x', 'page=1&page=2', 'q[]=x', 'page=99999999999999999999'])(
    'takes %s for the first page',
    async (query) => {
      fill(3);
      const page = await browser.get(`/instances/ins_1/contacts?${query}`);
      expect(titles(page.body)).toEqual(['Person 0', 'Person 1', 'Person 2']);
    },
  );

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
    expect(await empty()).toContain('Nothing has been copied yet');
    web.domain.instances.set('ins_1', instanceStatus({ status: 'disconnected' }));
    expect(await empty()).toContain('This company’s records are deleted');
  });

  it('does not know other resources', async () => {
    for (const name of ['tags', 'constructor', 'contacts.json', '%E0%A4%A']) {
      expect((await browser.get(`/instances/ins_1/${name}`)).status).toBeGreaterThanOrEqual(400);
    }
    expect((await browser.get('/instances/ins_1/tags')).status).toBe(404);
    expect((await browser.get('/instances/ins_1/tags.ndjson')).status).toBe(404);
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
    expect(list.body).toContain(
      'href="/instances/ins_1/contacts?record=a%2Fb%3Fc" dir="auto">&lt;script&gt;Ada',
    );
    for (const { body } of [list, await browser.get('/instances/ins_1/contacts/a%2Fb%3Fc')]) {
      expect(body).toContain('ada@example.com, +44 1');
      expect(body).toContain('<time datetime="2025-06-10T12:00:00.500Z">10 Jun 2025, 12:00 UTC</time>');
      expect(body).not.toContain('<script>Ada');
    }
    const page = await browser.get('/instances/ins_1/contacts/a%2Fb%3Fc');
    expect(page.body).toContain(
      document.replaceAll('"', '&quot;').replaceAll('<', '&lt;').replaceAll('>', '&gt;'),
    );
    const raw = await browser.get(
      (/href="([^"]+)">Raw JSON/.exec(page.body)?.[1] ?? '').replace('&amp;', '&'),
    );
    expect([raw.headers.get('content-type'), raw.body]).toEqual([
      'application/json; charset=utf-8',
      document,
    ]);
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

  it('says when its content was erased', async () => {
    web.domain.records.set('ins_1/contacts', [{ ...record('crd_1', ''), document: null, deletedAt: NOW }]);
    const { body } = await browser.get('/instances/ins_1/contacts/crd_1');
    expect(body).toContain('Its content was erased.');
    expect(body).not.toMatch(/Raw JSON|Erase this record/);
  });

  it('is shown as far as it was read, when it is large, with the way to all of it', async () => {
    const large = { ...record('large', `{"id":"large","n":[${'1,'.repeat(10)}`), isCut: true };
    web.domain.records.set('ins_1/contacts', [large]);
    const { body } = await browser.get('/instances/ins_1/contacts/large');
    expect(body).toContain('Only its first 39 characters are shown.');
    expect(body).toContain('href="/instances/ins_1/contacts.ndjson"');
    web.domain.records.set('ins_1/contacts', [record('large', '{"id":"large"}')]);
    expect((await browser.get('/instances/ins_1/contacts/large')).body).not.toContain('Only its first');
  });

  it.each(['.', '..', '%2e', '...', 'record', '?record=.'])(
    'with the id %s has a link that works',
    async (id) => {
      const others = ['.', '..', '%2e', '...', 'record'].filter((other) => other !== id);
      web.domain.records.set(
        'ins_1/contacts',
        [...others, id].map((each) => record(each, JSON.stringify({ id: each, name: `Dots ${each}.` }))),
      );
      const list = await browser.get('/instances/ins_1/contacts');
      const links = [...list.body.matchAll(/href="([^"]*)" dir="auto">Dots ([^<]*)\.</g)];
      const link = links.find(([, , of]) => of === id)?.[1] ?? '';
      const page = await browser.get(link);
      expect(page.body).toContain(`<code>${id}</code>`);
      expect(page.body).toContain('as the service sent it');
      web.domain.records.set('ins_1/contacts', []);
      expect((await browser.get(link)).status).toBe(404);
    },
  );

  it('is handed to the handler again by a button, under the id that the copy knows', async () => {
    web.domain.records.set('ins_1/contacts', [record('#7', '{"id":7}')]);
    const path = '/instances/ins_1/contacts?record=%237';
    expect((await browser.get(path)).body).not.toContain('Hand to the handler again');
    const handler = { pending: 0, dead_letters: 0, last_error: null, next_try_at: null };
    const resources = { contacts: listStatus({ handler }) };
    web.domain.instances.set('ins_1', instanceStatus({ resources }));
    const form = (await browser.get(path)).form('/instances/ins_1/contacts/replay');
    const page = await browser.submit(form);
    expect(web.domain.calls).toContain('replay ins_1 contacts #7');
    expect(page.body).toContain('The handler gets the records again.');
  });

  it('says when the service no longer has it, and 404 when it never was', async () => {
    web.domain.records.set('ins_1/contacts', [{ ...record('crd_1', '{}'), deletedAt: NOW }]);
    expect((await browser.get('/instances/ins_1/contacts/crd_1')).body).toContain(
      'no longer has this record',
    );
    const missing = await browser.get('/instances/ins_1/contacts/crd_2');
    expect(missing.status).toBe(404);
    expect(missing.body).toContain('No such record');
    expect(missing.body).toContain('href="/instances/ins_1/contacts">Back to the list');
    expect(missing.body).not.toContain('another browser');
  });
});

describe('the download', () => {
  const path = '/instances/ins_1/contacts.ndjson';

  /** Begins a download in a browser that takes nothing of its answer. */
  async function begin(from: HttpBrowser, of = path) {
    const cookie = `${SESSION_COOKIE}=${from.cookies()[SESSION_COOKIE]}`;
    const download = request(`${web.url}${of}`, { headers: { cookie } }).end();
    const [answer] = await once(download, 'response');
    answer.pause();
    return { status: answer.statusCode, download };
  }

  it('has every document as it came, a line each', async () => {
    const documents = ['{"id":"1","n":1.0}', '{"id":"2","u":"\\u00e9 é 山"}', '{"id":"3"}'];
    web.domain.records.set(
      'ins_1/contacts',
      documents.map((text, i) => record(String(i), text)),
    );
    const answer = await browser.get(path);
    expect(answer.headers.get('content-type')).toMatch(/^application\/x-ndjson/);
    expect(answer.headers.get('content-disposition')).toBe(
      'attachment; filename="riverside-dental-contacts.ndjson"',
    );
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
    const contacts = [
      {
        name: 'Ada, "Countess"',
        handles: [{ handle: 'a@b.c' }, { handle: '+44 1' }],
        created_at: '2025-06-10T12:00:00Z',
      },
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

  it('may be empty', async () => {
    const answer = await browser.get(path);
    expect(answer.status).toBe(200);
    expect(answer.body).toBe('');
  });

  it.each(['GET', 'HEAD'])(
    'is refused over HTTP/1.0, where what breaks off looks whole: %s',
    async (method) => {
      web.domain.stream = async function* () {
        yield streamed('x'.repeat(100_000));
        throw new CopyRemovedError();
      };
      const cookie = `${SESSION_COOKIE}=${browser.cookies()[SESSION_COOKIE]}`;
      const socket = connect(Number(new URL(web.url).port), '127.0.0.1');
      const answer = text(socket);
      socket.write(`${method} ${path} HTTP/1.0\r\nCookie: ${cookie}\r\n\r\n`);
      const [head = '', body = ''] = (await answer).split('\r\n\r\n');
      expect(head).toMatch(/^HTTP\/1\.1 505 /);
      if (method === 'GET') expect(body).toContain('Downloads need HTTP/1.1');
      const lines = web.log.lines.filter(({ level }) => level === 'error');
      expect(JSON.stringify(lines)).toContain('proxy_http_version 1.1;');
    },
  );

  it('is an error when the store fails before the first line', async () => {
    web.domain.stream = async function* () {
      yield* [];
      throw new Error('the store is broken');
    };
    const answer = await browser.get(path);
    expect(answer.status).toBe(500);
    expect(answer.body).not.toContain('the store is broken');
  });

  it('breaks off, rather than ends, when the store fails on the way', async () => {
    web.domain.stream = async function* () {
      yield streamed('x'.repeat(100_000));
      throw new Error('the store is broken');
    };
    await expect(browser.get(path)).rejects.toThrow();
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
    const { download } = await begin(browser);
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
    const lines = web.log.lines.filter((line) => line.route === '/instances/:id/:resource.ndjson');
    await waitFor(() => web.log.lines.some((line) => line.aborted === true), 'the log line');
    expect(lines.every((line) => line.level !== 'error')).toBe(true);
  });

  it('breaks off when the copy is deleted meanwhile, which is no error', async () => {
    web.domain.stream = async function* () {
      yield streamed('x'.repeat(100_000));
      throw new CopyRemovedError();
    };
    const known = web.log.lines.length;
    await expect(browser.get(path)).rejects.toThrow();
    await waitFor(() => web.log.lines.slice(known).some((line) => line.msg === 'download ended early'));
    expect(web.log.lines.slice(known).filter((line) => line.level === 'error')).toEqual([]);
  });

  it('breaks off at once when the copy is deleted before anything of it was sent', async () => {
    web.domain.stream = async function* () {
      yield streamed('x');
      throw new CopyRemovedError();
    };
    await expect(browser.get(path)).rejects.toThrow();
  });

  it('of a client that has gone before the first line is no error', async () => {
    const { promise: gone, resolve: goOn } = Promise.withResolvers<void>();
    let isAsked = false;
    web.domain.stream = async function* () {
      isAsked = true;
      await gone;
      yield streamed('x');
    };
    const known = web.log.lines.length;
    const cookie = `${SESSION_COOKIE}=${browser.cookies()[SESSION_COOKIE]}`;
    const download = request(`${web.url}${path}`, { headers: { cookie } }).end();
    download.on('error', () => undefined);
    await waitFor(() => isAsked);
    download.destroy();
    await waitFor(() => web.log.lines.slice(known).some((line) => line.aborted === true));
    goOn();
    await waitFor(() => web.log.lines.slice(known).some((line) => line.msg === 'download ended early'));
    expect(web.log.lines.slice(known).filter((line) => line.level === 'error')).toEqual([]);
  });

  it('comes forty at a time; each leaves its place', async () => {
    web.domain.stream = async function* () {
      for (;;) yield streamed('x'.repeat(100_000));
    };
    const underWay: Awaited<ReturnType<typeof begin>>[] = [];
    for (let n = 0; n < 40; n++) underWay.push(await begin(browser));
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

  it('that fails leaves its place', async () => {
    web.domain.stream = async function* () {
      yield* [];
      throw new Error('the store is broken');
    };
    for (let n = 0; n < 50; n++) expect((await browser.get(path)).status).toBe(500);
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

  it.each(['after=-1', 'after=x', 'after=', 'limit=1.5', 'limit=1&limit=2', 'after=99999999999999999999'])(
    'refuses %s, and says what is wrong',
    async (query) => {
      const answer = await browser.get(`${path}?${query}`);
      expect(answer.status).toBe(400);
      const { message } = (answer.json() as { _error: { message: string } })._error;
      expect(message).toMatch(/^“(after|limit)” must be a whole number, 0 or more\.$/);
    },
  );

  it('is of a list that there is', async () => {
    expect((await browser.get('/instances/ins_1/changes/tags.ndjson')).status).toBe(404);
  });
});
