import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { afterAll, expect, test } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession } from '../support/http-session.ts';
import { downloadIds, install, isSynced, waitForStatus } from '../support/install.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { goodHeaders, startHostileService } from './hostile-service.ts';

const MEGABYTE = 1024 * 1024;
const CONTACTS = 30;

/** All that a worker's heap may hold, in megabytes: beyond that its process ends. An answer of 16 MB can need 600. */
const HEAP_MB = 192;

/** What all of its memory stays below, with the bodies that come from the network: far less than with the large ones at once. */
const MOST_RSS = 800 * MEGABYTE;

const hostile = await startHostileService();
const testApp = await startTestApp({ workers: false, env: { SERVICE_API_URL: `${hostile.origin}/api` } });
const { control, session } = testApp;
hostile.lead(testApp.sandbox.origin);
const port = await findFreePort();
const worker = spawnEntry('src/worker.ts', {
  ...testApp.env,
  WORKER_PORT: String(port),
  NODE_OPTIONS: `--max-old-space-size=${HEAP_MB}`,
});
await worker.waitForOutput(/the workers run/);

let largestRss = 0;
const machine = createHttpSession(`http://127.0.0.1:${port}`);
const sampler = setInterval(async () => {
  const metrics = await machine.get('/metrics').catch(() => undefined);
  largestRss = Math.max(
    largestRss,
    Number(/^process_resident_memory_bytes (\d+)/m.exec(metrics?.body ?? '')?.[1] ?? 0),
  );
}, 50);
afterAll(() => clearInterval(sampler));

async function newCompany(respond: (response: ServerResponse) => void) {
  const company = await control.addCompany({
    name: 'Hostile',
    plan: 'starter',
    contacts: CONTACTS,
    conversations: 0,
  });
  hostile.answer(company.id, ({ response }) => respond(response));
  return { company, browser: session() };
}

/** Answers with this body. */
function body(content: string | Buffer, headers: Record<string, string> = {}) {
  return (response: ServerResponse) => {
    response.writeHead(200, goodHeaders(headers)).end(content);
  };
}

function pageOf(results: string): string {
  return `{"_pagination":{"next":null},"_results":${results}}`;
}

/** Writes without an announced length until so many bytes have gone, or nobody takes them any more. */
function pour(bytes: number) {
  return (response: ServerResponse) => {
    response.writeHead(200, goodHeaders()).write('{"_results":["');
    const chunk = Buffer.alloc(MEGABYTE, 'x');
    let written = 0;
    const on = () => {
      while (!response.destroyed && written < bytes) {
        written += chunk.length;
        if (!response.write(chunk)) return;
      }
      response.end();
    };
    response.on('drain', on);
    on();
  };
}

test.concurrent.each<[string, (response: ServerResponse) => void, string]>([
  ['that is empty', body(''), 'it is empty'],
  ['of HTML', body('<h1>maintenance</h1>', { 'content-type': 'text/html' }), 'it is not JSON'],
  ['that is cut short', body(pageOf('[{"id":"crd_1"},{"id":')), 'it is not JSON'],
  [
    'that breaks off before its length',
    (response) => {
      response.writeHead(200, goodHeaders({ 'content-length': '5000' }));
      response.write(pageOf('[]'), () => response.destroy());
    },
    'The connection to the service failed',
  ],
  ['with a record that is no JSON', body(pageOf('[{"id":"crd_1"},{"id":tru}]')), 'it is not JSON'],
  [
    'with such a record, and a next page',
    body(
      `{"_pagination":{"next":"${hostile.origin}/api/contacts?limit=100&page=2"},"_results":[{"id":tru}]}`,
    ),
    'it is not JSON',
  ],
  ['that is a list', body('[]'), 'there is no list of results in it'],
  ['that is null', body('null'), 'there is no list of results in it'],
  ['whose results are an object', body(pageOf('{"length":100}')), 'there is no list of results in it'],
  [
    'whose next is a number',
    body('{"_pagination":{"next":7},"_results":[]}'),
    'it does not say what comes next',
  ],
  ['that announces 50 MB', body(Buffer.alloc(50 * MEGABYTE, ' ')), 'larger than 32 megabytes'],
  ['of 50 MB', pour(50 * MEGABYTE), 'larger than 32 megabytes'],
  [
    'of 200 MB that is packed',
    body(gzipSync(Buffer.alloc(200 * MEGABYTE, ' '), { level: 1 }), { 'content-encoding': 'gzip' }),
    'The service packed its answer (gzip)',
  ],
  [
    'of 16 MB of records without anything',
    body(pageOf(`[${'{},'.repeat(5 * MEGABYTE)}{}]`)),
    'more than 10000 results',
  ],
  [
    'of 16 MB of lists within lists',
    body(pageOf('['.repeat(8 * MEGABYTE) + ']'.repeat(8 * MEGABYTE))),
    'more than 500000 values',
  ],
  [
    'of more records than any page has',
    body(pageOf(`[${'{},'.repeat(100_000)}{}]`)),
    'more than 10000 results',
  ],
])(
  'an answer %s: the dashboard says so, and the sync is complete when the service is well again',
  async (_what, respond, reason) => {
    const { browser, company } = await newCompany(respond);
    const id = await install(browser, company);
    const bad = await waitForStatus(browser, id, ({ resources }) => Boolean(resources.contacts?.error));
    expect(bad.resources.contacts?.error).toContain(reason);
    expect(bad.resources.contacts).toMatchObject({ pages: 0, stored: 0 });
    expect((await browser.get(`/instances/${id}`)).body).toContain(reason);
    hostile.relent(company.id);
    await waitForStatus(browser, id, isSynced);
    expect((await downloadIds(browser, id, 'contacts')).length).toBe(CONTACTS);
  },
);

test('a record that is nested 100,000 levels deep is a record like any other', async () => {
  const nested = (inner: string) => '{"a":['.repeat(50_000) + inner + ']}'.repeat(50_000);
  const documents = [
    '{"id":"crd_1","name":"before"}',
    `{"id":"crd_deep","name":"deepest","value":${nested('"sediment"')}}`,
    // Numbers of so many digits are read in another way.
    `{"value":${nested('12345678901234567890')},"id":7,"name":"numbered"}`,
    '{"id":"crd_2","name":"behind"}',
  ];
  const { browser, company } = await newCompany(body(pageOf(`[${documents.join(',')}]`)));
  const id = await install(browser, company);
  const status = await waitForStatus(browser, id, isSynced);
  expect(status.resources.contacts).toMatchObject({ pages: 1, stored: 4, skipped: 0 });
  expect((await browser.get(`/instances/${id}/contacts.ndjson`)).body).toBe(`${documents.join('\n')}\n`);
  // Its page shows the beginning of what is so long.
  expect((await browser.get(`/instances/${id}/contacts/crd_deep`)).body).toContain('deepest');
  for (const word of ['sediment', 'numbered', 'behind']) {
    await waitFor(async () => {
      const { body: found } = await browser.get(`/instances/${id}/contacts?q=${word}`);
      return /\/contacts\/[^"]*(crd_deep|7|crd_2)"/.test(found);
    });
  }
});

test('large answers that come slowly, many at once, are read a few at a time, and all of them are', async () => {
  const beginning = `${pageOf('[{"id":"crd_1"}]').slice(0, -1)},"_more":"`;
  const filler = Buffer.alloc(31 * MEGABYTE, 'x');
  const slowly = (response: ServerResponse) => {
    response.writeHead(200, goodHeaders({ 'content-length': String(beginning.length + filler.length + 2) }));
    response.write(beginning);
    response.write(filler);
    setTimeout(() => response.end('"}'), 500);
  };
  const all = await Promise.all(Array.from({ length: 20 }, () => newCompany(slowly)));
  await Promise.all(
    all.map(async ({ browser, company }) => {
      const id = await install(browser, company);
      // A gigabyte is read in all.
      const { resources } = await waitForStatus(browser, id, isSynced, 4 * PATIENCE_MS);
      expect(resources.contacts).toMatchObject({ pages: 1, stored: 1, error: null });
    }),
  );
});

test('the worker that read all that is the same, and has stayed small', async () => {
  expect(largestRss).toBeGreaterThan(0);
  expect(largestRss).toBeLessThan(MOST_RSS);
  expect((await worker.stop('SIGTERM')).code).toBe(0);
});
