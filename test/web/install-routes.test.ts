import { createHash } from 'node:crypto';
import { beforeEach, describe, expect, it } from 'vitest';
import type { InstallFailure } from '../../src/install/install-types.ts';
import { STATE_LIFETIME_MS } from '../../src/install/state.ts';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { waitFor } from '../support/wait-for.ts';
import { AUTHORIZE_URL } from './fake-domain.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  await web?.redis.flushall();
  web = await startWeb(web ? { redis: web.redis } : {});
  browser = web.browser();
});

async function begin(): Promise<string> {
  const page = await browser.get('/install', { follow: false });
  expect(page.status).toBe(302);
  expect(page.location?.href).toContain(AUTHORIZE_URL);
  return page.location?.searchParams.get('state') ?? '';
}

function sessionId(): string | undefined {
  return browser.cookies.get(new URL(web.url), SESSION_COOKIE);
}

const UNCHANGED = 'Nothing was stored. Of a company that was installed before, the app has changed nothing.';
const MAY_BE_ENDED =
  'Nothing was stored. If the service had authorized the app by then, it may have ended an earlier';
const NOT_THIS = 'By this request nothing was stored or changed. If the way back was used before';

describe('the callback', () => {
  it('leads to the dashboard by 303, uncached, under a new session id', async () => {
    const state = await begin();
    const before = sessionId();
    const answer = await browser.get(`/oauth/callback?code=ins_1&state=${state}`, { follow: false });
    expect(answer.status).toBe(303);
    expect(answer.location?.href).toBe(`${web.url}/instances/ins_1`);
    expect(answer.headers.get('cache-control')).toBe('no-store');
    expect(answer.headers.get('referrer-policy')).toBe('no-referrer');
    expect(sessionId()).not.toBe(before);
    const [cookie = ''] = answer.headers.getSetCookie();
    expect(cookie).toMatch(/HttpOnly/);
    expect(cookie).toMatch(/SameSite=Lax/);
    expect(cookie).not.toMatch(/Secure/);
    const dashboard = await browser.get('/instances/ins_1');
    expect(dashboard.status).toBe(200);
    expect(dashboard.body).toContain('Authorized. The sync is on its way.');
    expect((await browser.get('/instances/ins_1')).body).not.toContain('Authorized. The sync');
  });

  it('makes the old session id worthless', async () => {
    const state = await begin();
    const old = sessionId() ?? '';
    await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
    const thief = await web
      .browser()
      .get('/instances/ins_1', { headers: { cookie: `${SESSION_COOKIE}=${old}` } });
    expect(thief.status).toBe(404);
  });

  it('keeps a session for 30 days, but one without an instance only for an hour', async () => {
    await begin();
    await install(web.browser(), 'ins_1');
    const ttls = await Promise.all((await web.redis.keys('session:*')).map((key) => web.redis.ttl(key)));
    const days = ttls.map((seconds) => Math.round(seconds / 3_600) / 24);
    expect(new Set(days)).toEqual(new Set([1 / 24, 30]));
  });

  it('keeps earlier instances and other installs that have begun', async () => {
    await install(browser, 'ins_1');
    const other = await begin();
    const state = await begin();
    await browser.get(`/oauth/callback?code=ins_2&state=${state}`);
    expect((await browser.get('/instances/ins_1')).status).toBe(200);
    expect((await browser.get(`/oauth/callback?code=ins_3&state=${other}`)).url.pathname).toBe(
      '/instances/ins_3',
    );
  });

  it('keeps an install that another tab begins while the service is asked', async () => {
    const state = await begin();
    let other = '';
    web.domain.exchange = async () => {
      web.domain.exchange = async () => {};
      other = await begin();
    };
    await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
    const answer = await browser.get(`/oauth/callback?code=ins_2&state=${other}`);
    expect(answer.url.pathname).toBe('/instances/ins_2');
  });

  it('keeps the hundred companies that were installed last; another one comes back by a further install', async () => {
    for (let n = 1; n <= 100; n += 1) await install(browser, `ins_${n}`);
    await install(browser, 'ins_1');
    await install(browser, 'ins_101');
    expect((await browser.get('/instances/ins_2')).status).toBe(404);
    for (const id of ['ins_1', 'ins_3', 'ins_101'])
      expect((await browser.get(`/instances/${id}`)).status, id).toBe(200);
    const listed = (await browser.get('/')).body.match(/href="\/instances\/ins_\d+"/g);
    expect(new Set(listed).size).toBe(100);
    expect((await install(browser, 'ins_2')).url.pathname).toBe('/instances/ins_2');
    expect((await browser.get('/instances/ins_3')).status).toBe(404);
  });

  it('leads a reload to the instance, in this session alone', async () => {
    const state = await begin();
    const address = `/oauth/callback?code=ins_1&state=${state}`;
    await browser.get(address);
    expect((await browser.get(address)).url.pathname).toBe('/instances/ins_1');
    expect(web.domain.calls).toEqual(['exchange ins_1']);
    expect((await web.browser().get(address)).status).toBe(400);
  });

  it('leads to the instance also after later installs, as far as ten back', async () => {
    const addresses: string[] = [];
    for (let n = 1; n <= 11; n += 1) {
      addresses.push(`/oauth/callback?code=ins_${n}&state=${await begin()}`);
      await browser.get(addresses.at(-1) ?? '');
    }
    const [oldest = '', second = ''] = addresses;
    expect((await browser.get(second)).url.pathname).toBe('/instances/ins_2');
    expect((await browser.get(oldest)).status).toBe(400);
    expect(web.domain.calls).toHaveLength(11);
  });

  it.each([
    ['another code', 'code=ins_2'],
    ['an error', 'error=access_denied'],
  ])('takes a spent state with %s for no reload: nothing is exchanged', async (_what, answer) => {
    const state = await begin();
    await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
    const page = await browser.get(`/oauth/callback?${answer}&state=${state}`);
    expect(page.status).toBe(400);
    expect(page.body).toContain('This install cannot be finished');
    expect(page.body).toContain(`href="${web.url}/install">Start again`);
    expect(web.domain.calls).toEqual(['exchange ins_1']);
    const reload = await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
    expect(reload.url.pathname, 'the first install still counts').toBe('/instances/ins_1');
  });

  it('leads both of a double click to the dashboard, and exchanges the code once', async () => {
    const state = await begin();
    const address = `/oauth/callback?code=ins_1&state=${state}`;
    const { promise: met, resolve: meet } = Promise.withResolvers<void>();
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    web.domain.exchange = () => {
      ask();
      return met;
    };
    const first = browser.get(address);
    await asked;
    const second = browser.get(address);
    meet();
    const pages = await Promise.all([first, second]);
    expect(pages.map(({ status, url }) => [status, url.pathname])).toEqual([
      [200, '/instances/ins_1'],
      [200, '/instances/ins_1'],
    ]);
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('leads a browser there that missed the answer: it still has the old cookie', async () => {
    await install(browser, 'ins_0');
    const state = await begin();
    const headers = { cookie: `${SESSION_COOKIE}=${sessionId()}` };
    const address = `/oauth/callback?code=ins_1&state=${state}`;
    // Neither jar keeps what the other gets, as a browser that breaks off and asks again.
    await web.browser().get(address, { headers, follow: false });
    const again = web.browser();
    const answer = await again.get(address, { headers, follow: false });
    expect(answer.status).toBe(303);
    expect((await again.get('/instances/ins_1')).status).toBe(200);
    expect((await again.get('/instances/ins_0')).status, 'what the session had').toBe(200);
    expect(web.domain.calls).toEqual(['exchange ins_0', 'exchange ins_1']);
  });

  it('leads a browser there that missed the answer for a minute, by Redis’ clock', async () => {
    await install(browser);
    const [name = '', ...others] = await web.redis.keys('install-session:*');
    expect(others).toEqual([]);
    const left = await web.redis.pttl(name);
    expect(left).toBeGreaterThan(50_000);
    expect(left).toBeLessThanOrEqual(60_000);
  });

  it('takes a state once for longer than it is good, also with what its browser was given when it began', async () => {
    const started = await browser.get('/install', { follow: false });
    const state = started.location?.searchParams.get('state') ?? '';
    const cookie = started.headers
      .getSetCookie()
      .map((set) => set.split(';')[0] ?? '')
      .find((set) => set.includes('.install.'));
    await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
    const claims = await web.redis.keys('install-claim:*');
    expect(claims).toHaveLength(1);
    expect(await web.redis.pttl(claims[0] ?? '')).toBeGreaterThan(STATE_LIFETIME_MS);
    const headers = { cookie: cookie ?? 'none' };
    const again = () =>
      web.browser().get(`/oauth/callback?code=ins_2&state=${state}`, { headers, follow: false });
    expect((await again()).status).toBe(400);
    expect(web.domain.calls).toEqual(['exchange ins_1']);
    // That is the claim’s doing.
    await web.redis.del(claims);
    expect((await again()).status).toBe(303);
  });

  it('lets a late second click of one tab not take away what another tab has installed since', async () => {
    const [state, other] = [await begin(), await begin()];
    const headers = { cookie: `${SESSION_COOKIE}=${sessionId()}` };
    const address = `/oauth/callback?code=ins_1&state=${state}`;
    await browser.get(address);
    await browser.get(`/oauth/callback?code=ins_2&state=${other}`);
    const late = await browser.get(address, { headers, follow: false });
    expect(late.location?.href).toContain(`${web.url}${address}&again=`);
    expect((await browser.get(address)).url.pathname).toBe('/instances/ins_1');
    expect((await browser.get('/instances/ins_2')).status).toBe(200);
    expect(web.domain.calls).toEqual(['exchange ins_1', 'exchange ins_2']);
  });

  it('hands nothing over for the old cookie without the code, or for the code without the cookie', async () => {
    const state = await begin();
    const headers = { cookie: `${SESSION_COOKIE}=${sessionId()}` };
    const address = `/oauth/callback?code=ins_1&state=${state}`;
    await browser.get(address);
    const thief = web.browser();
    for (const [stolen, options] of [
      [`/oauth/callback?code=ins_2&state=${state}`, { headers }],
      [`/oauth/callback?state=${state}`, { headers }],
      [address, {}],
      [address, { headers: { cookie: `${SESSION_COOKIE}=s%3Aother.signature` } }],
    ] as const) {
      expect((await thief.get(stolen, options)).status).toBe(400);
      expect((await thief.get('/instances/ins_1')).status).toBe(404);
    }
    expect(web.domain.calls).toEqual(['exchange ins_1']);
  });

  it('finishes two tabs at the same moment, and the browser keeps both companies', async () => {
    const states = [await begin(), await begin()];
    const pages = await Promise.all(
      states.map((state, n) => browser.get(`/oauth/callback?code=ins_${n}&state=${state}`)),
    );
    expect(pages.map(({ status, url }) => [status, url.pathname])).toEqual([
      [200, '/instances/ins_0'],
      [200, '/instances/ins_1'],
    ]);
    const { body } = await browser.get('/');
    expect(body).toContain('/instances/ins_0');
    expect(body).toContain('/instances/ins_1');
  });

  it('begins two tabs at the same moment, and both come back', async () => {
    await begin();
    const states = await Promise.all([begin(), begin(), begin()]);
    for (const [n, state] of states.entries()) {
      const page = await browser.get(`/oauth/callback?code=ins_${n}&state=${state}`);
      expect(page.url.pathname).toBe(`/instances/ins_${n}`);
    }
  });

  it('begins two tabs at the same moment in a browser that has never been here, and both come back', async () => {
    const states = await Promise.all([begin(), begin(), begin()]);
    const pages = await Promise.all(
      states.map((state, n) => browser.get(`/oauth/callback?code=ins_${n}&state=${state}`)),
    );
    expect(pages.map(({ status, url }) => [status, url.pathname])).toEqual(
      states.map((_state, n) => [200, `/instances/ins_${n}`]),
    );
    const { body } = await browser.get('/');
    for (const n of states.keys()) expect(body).toContain(`/instances/ins_${n}`);
  });

  it('takes no cookie of another state or time for the sign that this browser began', async () => {
    const started = await web.browser().get('/install', { follow: false });
    const state = started.location?.searchParams.get('state') ?? '';
    const [sign = ''] = started.headers
      .getSetCookie()
      .map((cookie) => cookie.split(';')[0] ?? '')
      .filter((cookie) => cookie.includes('.install.'));
    const [name, value = ''] = sign.split('=');
    const later = `${name}=${Number(value.split('.')[0]) + 1_000}.${value.split('.')[1]}`;
    const other = await begin();
    for (const [cookie, asked] of [
      ['', state],
      [later, state],
      [`${name}=${value.slice(0, -1)}`, state],
      [sign, other],
      [sign, `${state}x`],
    ] as const) {
      const page = await web
        .browser()
        .get(`/oauth/callback?code=ins_9&state=${asked}`, { headers: { cookie } });
      expect(page.status, cookie).toBe(400);
    }
    expect(web.domain.calls).toEqual([]);
    const address = `/oauth/callback?code=ins_9&state=${state}`;
    expect((await web.browser().get(address, { headers: { cookie: sign }, follow: false })).status).toBe(303);
    const replay = await web.browser().get(address, { headers: { cookie: sign }, follow: false });
    expect(replay.status, 'it is good once').toBe(400);
    expect(web.domain.calls).toEqual(['exchange ins_9']);
  });

  it('begins anew for a browser whose session was replaced meanwhile, and leaves it its newer cookie', async () => {
    await install(browser);
    const id = decodeURIComponent(sessionId() ?? '').replace(/^s:|\..*$/g, '');
    const digest = createHash('sha256').update(id).digest('base64url');
    await web.redis.set(`install:{${digest}}:change`, 'another tab', 'PX', 5_000);
    const [limit = ''] = await web.redis.keys('limit:install:*');
    const before = Number(await web.redis.get(limit));
    const beginning = browser.get('/install', { follow: false });
    // From here on it knows its session, and waits for the other tab.
    await waitFor(async () => Number(await web.redis.get(limit)) > before);
    await web.redis.del(`session:${id}`, `install:{${digest}}:change`);
    const answer = await beginning;
    expect(answer.location?.pathname).toBe('/install');
    expect(answer.headers.getSetCookie()).toEqual([]);
    expect(await web.redis.exists(`session:${id}`)).toBe(0);
    expect((await browser.get('/install', { follow: false })).location?.href).toContain(AUTHORIZE_URL);
  });

  it.each([
    ['state', 400, NOT_THIS],
    ['denied', 403, UNCHANGED],
    ['not_administrator', 403, UNCHANGED],
    ['code', 400, UNCHANGED],
    ['credentials', 502, UNCHANGED],
    ['unreachable', 502, MAY_BE_ENDED],
    ['trouble', 502, MAY_BE_ENDED],
    ['refused', 400, UNCHANGED],
    ['malformed', 400, UNCHANGED],
    ['busy', 503, MAY_BE_ENDED],
    ['stopping', 503, UNCHANGED],
    ['cut_off', 503, 'If the service had authorized the app by then'],
    ['unwritten', 503, 'The app keeps what the service has granted'],
    ['unstored', 503, MAY_BE_ENDED],
    ['disconnected', 409, 'The app has given up what the service had granted.'],
  ] as [InstallFailure, number, string][])(
    'explains %s, says what may have changed, and offers to start again',
    async (failure, status, outcome) => {
      web.domain.failure = failure;
      const state = await begin();
      const page = await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
      expect(page.status).toBe(status);
      expect(page.body).toContain(`It failed: ${failure} &lt;b&gt;`);
      expect(page.body).toContain(outcome);
      expect(page.body).toContain(`href="${web.url}/install"`);
      expect(page.body).not.toMatch(/at \w+.*\.ts:/);
      web.domain.failure = undefined;
      const again = await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
      expect(again.status, 'the state is spent').toBe(400);
    },
  );

  it('takes a code of 8 KB', async () => {
    const code = `ins_1.${'x'.repeat(8 * 1_024 - 6)}`;
    await browser.get(`/oauth/callback?code=${code}&state=${await begin()}`, { follow: false });
    expect(web.domain.calls).toEqual([`exchange ${code}`]);
  });

  it.each([
    ['a state twice', (state: string) => `code=x&state=${state}&state=${state}`],
    ['a code twice', (state: string) => `code=x&code=y&state=${state}`],
    ['a code of 10 KB', (state: string) => `code=${'x'.repeat(10 * 1_024)}&state=${state}`],
    ['anything of 10 KB', (state: string) => `code=x&z=${'x'.repeat(10 * 1_024)}&state=${state}`],
    ['a code over 8 KB', (state: string) => `code=${'x'.repeat(8 * 1_024 + 1)}&state=${state}`],
    ['anything twice', (state: string) => `code=x&state=${state}&z=1&%7a=2`],
  ])('refuses %s before anything else', async (_what, query) => {
    const state = await begin();
    expect((await browser.get(`/oauth/callback?${query(state)}`)).status).toBe(400);
    expect(web.domain.calls).toEqual([]);
    const answer = await browser.get(`/oauth/callback?code=ins_1&state=${state}`);
    expect(answer.url.pathname, 'the state was left alone').toBe('/instances/ins_1');
  });
});

it('sets a cookie for https alone when that is where browsers come from, and believes its proxy', async () => {
  const secure = await startWeb({ redis: web.redis, publicUrl: 'https://app.example', proxyHops: 1 });
  const visit = (headers: Record<string, string>) =>
    secure.browser().get('/install', { follow: false, headers });
  const answer = await visit({ 'x-forwarded-proto': 'https' });
  expect(answer.headers.getSetCookie().at(-1)).toMatch(
    new RegExp(`^__Host-${SESSION_COOKIE}=[^;]+; Path=/; Expires=[^;]+; HttpOnly; Secure; SameSite=Lax$`),
  );
  expect(answer.headers.get('strict-transport-security')).toMatch(/max-age=\d{8}/);
  const planted = await secure.browser().get('/install', {
    follow: false,
    headers: { 'x-forwarded-proto': 'https', cookie: `${SESSION_COOKIE}=s%3Aplanted.x` },
  });
  expect(planted.headers.getSetCookie().join(), 'a cookie that another host can set is none').toMatch(
    /^__Host-/,
  );
  const unproxied = await visit({});
  expect(unproxied.status).toBe(500);
  expect(unproxied.body).toContain('X-Forwarded-Proto');
});

it('logs out by https too: the cookie with the prefix goes', async () => {
  const secure = await startWeb({ redis: web.redis, publicUrl: 'https://app.example', proxyHops: 1 });
  const https = { 'x-forwarded-proto': 'https' };
  const visit = (path: string, cookie: string) =>
    secure.browser().get(path, { follow: false, headers: { ...https, cookie } });
  const cookieOf = ({ headers }: { headers: Headers }) =>
    headers
      .getSetCookie()
      .find((cookie) => cookie.includes(SESSION_COOKIE))
      ?.split(';')[0] ?? '';
  const started = await visit('/install', '');
  const state = started.location?.searchParams.get('state');
  const callback = `/oauth/callback?code=ins_1&state=${state}`;
  const installed = await visit(callback, cookieOf(started));
  const missed = await visit(callback, cookieOf(started));
  expect([installed.status, missed.status], 'the second has missed the answer').toEqual([303, 303]);
  const front = await visit('/', cookieOf(installed));
  const fields = front.form('/logout').fields;
  const headers = { ...https, cookie: cookieOf(installed), origin: 'https://app.example' };
  const answer = await secure.browser().post('/logout', fields, { follow: false, headers });
  expect(answer.status).toBe(303);
  expect(answer.headers.getSetCookie().join()).toMatch(/^__Host-[^=]+=; Path=\/; Expires=Thu, 01 Jan 1970/);
  expect((await visit('/instances/ins_1', cookieOf(installed))).status).toBe(404);
});
