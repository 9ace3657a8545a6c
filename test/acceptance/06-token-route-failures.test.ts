import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { afterAll, describe, expect, it } from 'vitest';
import type { Page } from '../support/http-browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { query } from './support/database.ts';
import { syncAgain } from './support/lists.ts';
import type { FaultOrder } from './support/sandbox-control.ts';
import { createWorld, instanceOf } from './support/world.ts';

const GOOD = { access_token: 'at_1', refresh_token: 'rt_1', expires_at: '4102444800', token_type: 'Bearer' };
const HTML = '<!doctype html><script>alert(1)</script>';

// Another place, where neither the secret nor the code may ever arrive.
const arrivals: string[] = [];
const elsewhere = createServer((request, response) => {
  arrivals.push(`${request.method} ${request.url}`);
  response.setHeader('content-type', 'application/json');
  response.end(JSON.stringify(GOOD));
}).listen(0, '127.0.0.1');
await once(elsewhere, 'listening');
const location = `http://127.0.0.1:${(elsewhere.address() as AddressInfo).port}/stolen`;
afterAll(() => void elsewhere.close());

type Fault = FaultOrder['fault'];
const json = { 'content-type': 'application/json' };
const html = { 'content-type': 'text/html' };
const without = (name: string) => ({ ...GOOD, [name]: undefined });

const CASES: [string, Fault][] = [
  ...[301, 302, 303, 307, 308].map((status): [string, Fault] => [
    `a redirect with ${status}`,
    { status, headers: { location }, body: GOOD },
  ]),
  ['a refresh header', { status: 200, headers: { ...html, refresh: `0; url=${location}` }, body: HTML }],
  ['500', { status: 500, body: { error: 'server_error' } }],
  ['500 with tokens', { status: 500, body: GOOD }],
  ['429', { status: 429, headers: { 'retry-after': '30' }, body: {} }],
  ['502 with HTML', { status: 502, headers: html, body: HTML }],
  ['200 with HTML', { status: 200, headers: html, body: HTML }],
  ['HTML that is called JSON', { status: 200, headers: json, body: HTML }],
  ['nothing', { status: 200, headers: json, body: '' }],
  ['204', { status: 204, body: '' }],
  ['null', { status: 200, headers: json, body: 'null' }],
  ['a list', { status: 200, body: [GOOD] }],
  ['half a document', { status: 200, headers: json, body: JSON.stringify(GOOD).slice(0, -1) }],
  ['no access token', { status: 200, body: without('access_token') }],
  ['no refresh token', { status: 200, body: without('refresh_token') }],
  ['an empty access token', { status: 200, body: { ...GOOD, access_token: '' } }],
  ['a number for a token', { status: 200, body: { ...GOOD, access_token: 7 } }],
  ['a list for a token', { status: 200, body: { ...GOOD, refresh_token: ['rt_1'] } }],
  ['a header in a token', { status: 200, body: { ...GOOD, access_token: 'at_1\r\nx-evil: 1' } }],
  ['an error inside', { status: 200, body: { error: 'token_expired' } }],
  ['a megabyte', { status: 200, body: { ...GOOD, more: 'x'.repeat(1_000_000) } }],
  ['a closed connection', { drop: 'after' }],
  ['a connection that breaks on the way', { truncate: 20, drop: 'after' }],
];

describe('6. A token route that redirects, fails, times out, answers HTML or nonsense leads to a clear page, stores nothing, keeps an older grant, and the secret goes nowhere else.', async () => {
  const world = await createWorld();
  await world.startAll();
  const { company, browser, id } = await world.installed({ name: 'Older grant' });
  await world.waitForSync(browser, id);
  const stored = async () => ({
    instances: await query(world.databaseUrl, 'select id from instances order by id'),
    tokens: await query(world.databaseUrl, 'select instance_id, access_token, refresh_token from tokens'),
  });
  const before = await stored();
  // Nothing but the app's own look at the answer keeps these tokens out: nobody says that they are unknown.
  await world.control.fault({ match: { path: '/me' }, fault: { status: 404, body: {} }, times: 1_000 });
  // The longest case waits for the app's own timeout while the others run.
  const timedOut = await installWith({ delay_ms: 100_000 });

  /** Comes back from the consent page; the token route answers with a fault. */
  async function installWith(fault: Fault): Promise<{ page: Promise<Page> }> {
    const person = world.browser();
    const callback = await world.authorize(person, company);
    const { id: order } = await world.control.fault({ match: { path: '/oauth/token' }, fault, times: 1 });
    const page = person.get(callback);
    await waitFor(
      async () => (await world.control.faults()).some(({ id, used }) => id === order && used === 1),
      'the fault',
    );
    return { page };
  }

  async function expectClearPage(page: Page): Promise<void> {
    expect(page.url.pathname).toBe('/oauth/callback');
    expect([502, 503, 504]).toContain(page.status);
    expect(page.text()).toMatch(/the service/i);
    expect(page.body).toMatch(/<a [^>]*href="[^"]*\/install"/);
    expect(page.body).not.toMatch(/<script>alert|at_1|rt_1/);
    expect(page.body).not.toContain(world.env.CLIENT_SECRET);
    expect(await stored()).toEqual(before);
    expect(arrivals).toEqual([]);
  }

  it.each(CASES)('%s', async (_what, fault) => {
    const { page } = await installWith(fault);
    await expectClearPage(await page);
  });

  it('no answer in time', async () => {
    await expectClearPage(await timedOut.page);
  });

  it('the older grant goes on working', async () => {
    const { status } = await syncAgain(world, browser, id);
    expect(status).toBe('active');
  });

  it('the answer that all cases are changed from does install', async () => {
    const { page } = await installWith({ status: 200, body: GOOD });
    instanceOf(await page);
    expect((await stored()).instances.length).toBe(2);
  });
});
