import { existsSync, readFileSync } from 'node:fs';
import type { ServerResponse } from 'node:http';
import { gzipSync } from 'node:zlib';
import { describe, expect, it } from 'vitest';
import { expectWhole } from './support/lists.ts';
import { goodHeaders, pageOf, startProxy } from './support/proxy.ts';
import { createWorld } from './support/world.ts';

const MEGABYTE = 1024 * 1024;
/** All of the worker's memory at its largest. */
const MOST_MEMORY_MB = 800;
/** The slowest answer takes 20 s. Under load a worker may lose the job, and the sweep brings it back within 30 s. */
const TOLD_WITHIN_MS = 200_000;

const body =
  (content: string | Buffer, headers: Record<string, string> = {}) =>
  (response: ServerResponse) =>
    void response.writeHead(200, goodHeaders(headers)).end(content);

/** Sends a page that does not end: a piece, whenever the reader has taken the one before and the pause is over. */
const endless = (piece: Buffer, pauseMs: number) => (response: ServerResponse) => {
  response.writeHead(200, goodHeaders()).write('{"_results":["');
  const send = () => {
    if (response.destroyed) return;
    response.write(piece, () => setTimeout(send, pauseMs));
  };
  send();
};

const breakOff = (response: ServerResponse) => {
  response.writeHead(200, goodHeaders({ 'content-length': '5000' }));
  response.write(pageOf([]), () => response.destroy());
};

const deep = '['.repeat(8 * MEGABYTE) + ']'.repeat(8 * MEGABYTE);

describe("32. Truncated, dripping, huge, deeply nested, HTML, empty or gzip-bomb answers take bounded time and memory and leave a clear reason; one resource's trouble does not touch the other.", async () => {
  const proxy = await startProxy();
  const world = await createWorld({ env: { SERVICE_API_URL: proxy.apiUrl } });
  proxy.lead(world.sandbox.origin);
  const { worker } = await world.start();

  it.concurrent.each<[string, (response: ServerResponse) => void, RegExp]>([
    ['is empty', body(''), /empty/],
    ['is HTML', body('<h1>maintenance</h1>', { 'content-type': 'text/html' }), /JSON|HTML/],
    ['is cut short', body(pageOf(['{"id":"crd_1"}', '{"id":']).slice(0, -20)), /JSON/],
    ['breaks off before its length', breakOff, /connection/i],
    ['is null', body('null'), /results/],
    ['does not say what comes next', body('{"_pagination":{"next":7},"_results":[]}'), /next/],
    ['drips without an end', endless(Buffer.from('x'), 100), /time|long|second/i],
    ['pours without an end', endless(Buffer.alloc(MEGABYTE, 'x'), 0), /large|mega|MB/i],
    ['announces 50 MB', body(Buffer.alloc(50 * MEGABYTE, ' ')), /large|mega|MB/i],
    [
      'is a gzip bomb',
      body(gzipSync(Buffer.alloc(200 * MEGABYTE, ' '), { level: 1 }), { 'content-encoding': 'gzip' }),
      /gzip|large|mega|MB/i,
    ],
    ['is 16 MB of lists within lists', body(pageOf([deep])), /values|deep|nested|large/i],
    ['is 5 million empty records', body(pageOf(Array(5 * MEGABYTE).fill('{}'))), /results|records|large/i],
  ])('an answer that %s: told, bounded, the other list whole', async (_what, respond, reason) => {
    const company = await world.control.addCompany({ name: 'Bad answers', contacts: 30, conversations: 120 });
    proxy.answer(company.id, '/contacts', ({ response }) => respond(response));
    const browser = world.browser();
    const id = await world.install(browser, company);
    const { resources } = await world.waitForStatus(
      browser,
      id,
      ({ resources: { contacts, conversations } }) =>
        // The app breaks the connection off: a request beside it may fail with that once.
        reason.test(contacts.error ?? '') && conversations.state === 'idle',
      TOLD_WITHIN_MS,
    );
    const dashboard = (await browser.get(`/instances/${id}`)).text();
    expect(dashboard).toMatch(
      /The service (sent an answer that the app cannot read|did not answer in time|cannot be reached)/,
    );
    expect(dashboard).not.toContain(resources.contacts.error);
    expect(resources.conversations.error).toBeNull();
    await expectWhole(world, company, browser, id, ['conversations']);
    expect(await world.download(browser, id, 'contacts')).toEqual([]);

    proxy.relent(company.id);
    await world.press(browser, id, 'sync');
    await world.waitForSync(browser, id);
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it.concurrent.each([
    ['a 500', { status: 500 }],
    ['a connection that breaks', { drop: 'before' as const }],
    ['an answer that is lost', { drop: 'after' as const }],
    ['an answer that is cut short', { truncate: 300 }],
  ])('%s passes by itself, and nothing is missing', async (_what, fault) => {
    const company = await world.control.addCompany({ name: 'Passing', contacts: 250, conversations: 0 });
    await world.control.fault({ match: { path: '/contacts', company_id: company.id }, fault, times: 2 });
    const browser = world.browser();
    const id = await world.install(browser, company);
    await world.waitForSync(browser, id);
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it('the worker that has read all of that is the same, and has stayed small', async () => {
    const status = `/proc/${worker.pid}/status`;
    // Only Linux tells the peak.
    const peakKb = existsSync(status) ? /^VmHWM:\s+(\d+)/m.exec(readFileSync(status, 'utf8'))?.[1] : '0';
    expect(Number(peakKb) / 1024).toBeLessThan(MOST_MEMORY_MB);
    expect((await worker.stop('SIGTERM')).code).toBe(0);
  });
});
