import { once } from 'node:events';
import { request } from 'node:http';
import { Redis } from 'ioredis';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { STATE_LIFETIME_MS } from '../../src/install/state.ts';
import type { HttpSession } from '../support/http-session.ts';
import { consent } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const { control, session, redisUrl, config } = await startTestApp({ workers: false });
const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 20, conversations: 20 });
const redis = new Redis(redisUrl);
afterAll(() => redis.disconnect());
afterEach(() => void vi.useRealTimers());

async function tokenRequests(): Promise<number[]> {
  const rows = await control.requests();
  return rows.filter(({ path }) => path === '/oauth/token').map(({ status }) => status);
}

/** Goes to the service and back, up to the callback, which is not asked yet. */
async function callbackOf(browser: HttpSession, whose = company): Promise<URL> {
  const back = await consent(browser, await browser.get('/install'), whose, { follow: false });
  if (back.location === undefined) throw new Error('no way back');
  return back.location;
}

function instancesOf(body: string): string[] {
  return [...body.matchAll(/href="\/instances\/(ins_\w+)"/g)].map(([, id = '']) => id);
}

const cookieOf = (browser: HttpSession) => browser.cookies.header(new URL(config.publicUrl)) ?? '';

test('a state that has expired asks the service for nothing, and the page leads to a new start', async () => {
  const browser = session();
  const callback = await callbackOf(browser);
  const before = await tokenRequests();
  const state = callback.searchParams.get('state') ?? 'none';
  for (const key of await redis.keys('session:*')) {
    const data = JSON.parse((await redis.get(key)) ?? '{}');
    if (!JSON.stringify(data).includes(state)) continue;
    for (const pending of data.pendingInstalls) pending.createdAt -= 10 * 60_000;
    await redis.set(key, JSON.stringify(data), 'KEEPTTL');
  }
  const page = await browser.get(callback);
  expect(page.status).toBe(400);
  expect(page.body).toContain('10 minutes');
  const [, again = ''] = /href="([^"]*\/install)">Start again/.exec(page.body) ?? [];
  expect(await tokenRequests()).toEqual(before);
  expect((await consent(browser, await browser.get(again), company)).url.pathname).toMatch(/^\/instances\//);
});

test.each([
  ['in time', 1, STATE_LIFETIME_MS - 60_000],
  ['too late', 0, STATE_LIFETIME_MS],
])(
  'a consent page that nothing but its install’s cookie tells of, answered %s: requests for tokens, %d',
  async (_what, asked, ageMs) => {
    const browser = session();
    vi.useFakeTimers({ toFake: ['Date'], now: Date.now() - ageMs });
    const callback = await callbackOf(browser);
    // The session is another tab's by now; and a browser may send a cookie for longer than it should.
    const begun = cookieOf(browser)
      .split('; ')
      .filter((cookie) => cookie.startsWith('partner_app.install.'));
    expect(begun.length).toBe(1);
    vi.useRealTimers();
    const before = await tokenRequests();
    const page = await browser.get(callback, { headers: { cookie: begun.join() }, follow: false });
    expect((await tokenRequests()).length - before.length).toBe(asked);
    if (asked === 0) expect(page.body).toContain('10 minutes');
  },
);

test('a session that somebody planted sees nothing of what is installed in it', async () => {
  const attacker = session();
  await attacker.get('/install', { follow: false });
  const planted = { cookie: cookieOf(attacker) };
  const victim = session();
  const started = await victim.get('/install', { follow: false, headers: planted });
  const back = await consent(victim, await victim.get(started.location ?? ''), company, { follow: false });
  const answer = await victim.get(back.location ?? '', { follow: false, headers: planted });
  expect(answer.status).toBe(303);
  expect((await victim.get(answer.location ?? '')).status).toBe(200);
  expect((await attacker.get(answer.location ?? '')).status).toBe(404);
  expect(instancesOf((await attacker.get('/')).body)).toEqual([]);
});

test('markup in the service’s error is text', async () => {
  const browser = session();
  const callback = await callbackOf(browser);
  callback.searchParams.delete('code');
  callback.searchParams.set('error', '<script>alert(1)</script>');
  callback.searchParams.set(
    'error_description',
    '"><img src=x onerror=alert(2)><a href="javascript:alert(3)">',
  );
  const page = await browser.get(callback);
  expect(page.status).toBe(400);
  expect(page.body).toContain('&lt;script&gt;alert(1)&lt;/script&gt;');
  expect(page.body).toContain('&lt;img src=x onerror=alert(2)&gt;');
  expect(page.body).not.toMatch(/<script>|<img src=x|<a href="javascript/);
});

test('parameters that stand there twice, or are 10 KB long, by name or by value, are refused with 400 and ask for nothing', async () => {
  const browser = session();
  const callback = await callbackOf(browser);
  const before = await tokenRequests();
  const long = 'x'.repeat(10 * 1_024);
  const names = ['state', 'code', 'error', 'error_description', 'anything'];
  for (const added of [...names.flatMap((name) => [`${name}=a&${name}=b`, `${name}=${long}`]), `${long}=a`]) {
    const page = await browser.get(`${callback}&${added}`);
    expect(page.status, added.slice(0, 20)).toBe(400);
    expect(page.body).toContain('This address makes no sense');
  }
  expect(await tokenRequests()).toEqual(before);
  expect((await browser.get(callback)).status).toBe(200);
});

test('a callback that comes five times at once is one instance: every click ends on its dashboard', async () => {
  const browser = session();
  const fresh = await control.addCompany({ name: 'Clicks', plan: 'starter' });
  const callback = await callbackOf(browser, fresh);
  const before = await tokenRequests();
  const pages = await Promise.all(Array.from({ length: 5 }, () => browser.get(callback)));
  expect(new Set(pages.map(({ status, url }) => `${status} ${url.pathname}`)).size).toBe(1);
  expect(pages[0]?.status).toBe(200);
  expect(instancesOf((await browser.get('/')).body)).toHaveLength(1);
  expect(await tokenRequests()).toEqual([...before, 200]);
  const reloaded = await browser.get(callback);
  expect(reloaded.url.pathname).toBe(pages[0]?.url.pathname);
  expect(await tokenRequests()).toEqual([...before, 200]);
});

test('a second click, for which the browser drops the first request, ends on the dashboard', async () => {
  const browser = session();
  const fresh = await control.addCompany({ name: 'Second click', plan: 'starter' });
  const callback = await callbackOf(browser, fresh);
  const before = await tokenRequests();
  const headers = { cookie: cookieOf(browser) };
  const first = request(callback, { headers }).end();
  first.on('error', () => {});
  await once(first, 'finish');
  await waitFor(async () => (await tokenRequests()).length > before.length, { intervalMs: 1 });
  first.destroy();
  const second = await browser.get(callback);
  expect([second.status, second.url.pathname.replace(/_\w+/, '_')]).toEqual([200, '/instances/ins_']);
  expect(instancesOf((await browser.get('/')).body)).toHaveLength(1);
  expect(await tokenRequests()).toEqual([...before, 200]);
});

test('two tabs that come back at the same moment, for two companies, both work', async () => {
  const browser = session();
  const other = await control.addCompany({ name: 'The other tab', plan: 'starter' });
  const callbacks = [await callbackOf(browser), await callbackOf(browser, other)];
  const pages = await Promise.all(callbacks.map((callback) => browser.get(callback)));
  expect(pages.map(({ status }) => status)).toEqual([200, 200]);
  const paths = pages.map(({ url }) => url.pathname);
  expect(new Set(paths).size).toBe(2);
  const listed = instancesOf((await browser.get('/')).body).map((id) => `/instances/${id}`);
  expect(listed.toSorted()).toEqual(paths.toSorted());
});

test('HEAD, which link checkers send, begins no install and finishes none', async () => {
  const browser = session();
  const callback = await callbackOf(browser);
  const headers = { cookie: cookieOf(browser) };
  const [before, stored] = [await tokenRequests(), await redis.keys('session:*')];
  for (const address of [callback, new URL('/install', callback)]) {
    const answer = await fetch(address, { method: 'HEAD', headers, redirect: 'manual' });
    expect([answer.status, answer.headers.get('allow'), answer.headers.get('location')]).toEqual([
      405,
      'GET',
      null,
    ]);
    expect(answer.headers.getSetCookie()).toEqual([]);
  }
  expect(await tokenRequests()).toEqual(before);
  expect((await redis.keys('session:*')).toSorted()).toEqual(stored.toSorted());
  expect((await browser.get(callback)).status).toBe(200);
});

test('the dashboard behind the callback is at a clean address that no cache keeps', async () => {
  const browser = session();
  const answer = await browser.get(await callbackOf(browser), { follow: false });
  expect(answer.headers.get('location')).toMatch(/^\/instances\/ins_\w+$/);
  expect(answer.headers.get('cache-control')).toBe('no-store');
  expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
  const dashboard = await browser.get(answer.location ?? '');
  expect(dashboard.headers.get('cache-control')).toBe('no-store');
  expect(dashboard.headers.get('referrer-policy')).toBe('no-referrer');
});

test('a refused callback is as private as one that succeeds', async () => {
  const browser = session();
  for (const query of ['', '?state=x&code=y', '?error=access_denied', '?code=a&code=b']) {
    const page = await browser.get(`/oauth/callback${query}`);
    expect(page.status).toBe(400);
    expect(page.headers.get('cache-control')).toBe('no-store');
    expect(page.headers.get('referrer-policy')).toBe('no-referrer');
    expect(page.headers.getSetCookie(), 'no session for who has begun nothing').toEqual([]);
  }
});
