import { beforeEach, expect, it } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpPage, HttpSession } from '../support/http-session.ts';
import { AUTHORIZE_URL } from './fake-domain.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  await web.redis.flushall();
  browser = web.browser();
});

/** Begins an install in a tab; answers the callback's address for the company with the id `code`. */
async function begin(code: string): Promise<string> {
  const answer = await browser.get('/install', { follow: false });
  return `/oauth/callback?state=${answer.location?.searchParams.get('state')}&code=${code}`;
}

/** The cookies that the browser has now, to be sent by a tab whose request is on its way while another is answered. */
function cookiesNow(): { headers: { cookie: string }; follow: false } {
  return { headers: { cookie: browser.cookies.header(new URL(web.url)) ?? '' }, follow: false };
}

function sessionCookies(answer: HttpPage): string[] {
  return answer.headers.getSetCookie().filter((cookie) => cookie.startsWith(`${SESSION_COOKIE}=`));
}

async function expectToSee(...ids: string[]): Promise<void> {
  for (const id of ids) expect((await browser.get(`/instances/${id}`)).status, id).toBe(200);
}

/** Holds `work` up where it asks the domain for `call` for the first time, until `meanwhile` is over. */
async function meanwhile<Result>(
  call: 'status' | 'disconnect',
  work: () => Promise<Result>,
  other: () => Promise<unknown>,
): Promise<Result> {
  const { control } = web.domain;
  const known = control[call];
  const reached = Promise.withResolvers<void>();
  const over = Promise.withResolvers<void>();
  const held = async (...args: never[]) => {
    reached.resolve();
    await over.promise;
    return (known as (...args: never[]) => Promise<never>)(...args);
  };
  Object.assign(control, { [call]: held });
  const result = work();
  await reached.promise;
  Object.assign(control, { [call]: known });
  await other();
  over.resolve();
  return result;
}

it('an install that begins with the cookie from before another tab’s install asks again, and takes no company away', async () => {
  await install(browser, 'ins_1');
  const callback = await begin('ins_2');
  const late = cookiesNow();
  await browser.get(callback);
  const answer = await browser.get('/install', late);
  expect(answer.location?.pathname).toBe('/install');
  expect(answer.headers.getSetCookie()).toEqual([]);
  const again = await browser.get(answer.location ?? '', { follow: false });
  expect(again.location?.href).toContain(AUTHORIZE_URL);
  const state = again.location?.searchParams.get('state');
  await browser.get(`/oauth/callback?state=${state}&code=ins_3`);
  await expectToSee('ins_1', 'ins_2', 'ins_3');
});

it('an install asks again as often as yet another tab has installed meanwhile', async () => {
  const callbacks = [await begin('ins_1'), await begin('ins_2'), await begin('ins_3')];
  let asks = '/install';
  for (const callback of callbacks) {
    const late = cookiesNow();
    await browser.get(callback);
    const answer = await browser.get(asks, late);
    expect(answer.headers.getSetCookie()).toEqual([]);
    asks = answer.location?.href ?? '';
    expect(new URL(asks).pathname).toBe('/install');
  }
  expect((await browser.get(asks, { follow: false })).location?.href).toContain(AUTHORIZE_URL);
  await expectToSee('ins_1', 'ins_2', 'ins_3');
});

it.each([
  ['that has installed before', true],
  ['that has never been here', false],
])(
  'a callback with the cookie from before another tab’s, in a browser %s, asks again and ends on its dashboard',
  async (_what, hasInstalled) => {
    if (hasInstalled) await install(browser, 'ins_1');
    const [first = '', second = ''] = await Promise.all([begin('ins_2'), begin('ins_3')]);
    const late = cookiesNow();
    await browser.get(first);
    const answer = await browser.get(second, late);
    expect(answer.location?.pathname).toBe('/oauth/callback');
    expect(sessionCookies(answer)).toEqual([]);
    const end = await browser.get(answer.location ?? '');
    expect([end.status, end.url.pathname]).toEqual([200, '/instances/ins_3']);
    await expectToSee(...(hasInstalled ? ['ins_1'] : []), 'ins_2', 'ins_3');
  },
);

it('a callback that comes again before the other tab’s answer, with the new cookie, has come asks once more', async () => {
  await install(browser, 'ins_1');
  const [first = '', second = ''] = await Promise.all([begin('ins_2'), begin('ins_3')]);
  const late = cookiesNow();
  await browser.get(first);
  let asks = second;
  for (let time = 0; time < 3; time++) {
    const answer = await browser.get(asks, late);
    expect(sessionCookies(answer)).toEqual([]);
    asks = answer.location?.href ?? '';
    expect(new URL(asks).pathname).toBe('/oauth/callback');
  }
  const end = await browser.get(asks);
  expect([end.status, end.url.pathname]).toEqual([200, '/instances/ins_3']);
  await expectToSee('ins_1', 'ins_2', 'ins_3');
});

it('a browser that has nothing but the cookie of a session that has ended is asked to come again a few times, and can install', async () => {
  const callback = await begin('ins_1');
  const late = cookiesNow();
  await browser.get(callback);
  const other = web.browser();
  let answer = await other.get('/install', late);
  for (let times = 1; answer.location?.pathname === '/install'; times++) {
    expect(times).toBeLessThan(5);
    answer = await other.get(answer.location, late);
  }
  expect(answer.location?.href).toContain(AUTHORIZE_URL);
  const state = answer.location?.searchParams.get('state');
  expect((await other.get(`/oauth/callback?state=${state}&code=ins_2`)).status).toBe(200);
  expect((await other.get('/instances/ins_1')).status).toBe(404);
});

it('an install that begins while a slow disconnect goes on in another tab ends on its dashboard', async () => {
  const page = await install(browser, 'ins_1');
  let callback = '';
  const answer = await meanwhile(
    'disconnect',
    () => browser.submit(page.form('/instances/ins_1/disconnect'), {}, { follow: false }),
    async () => {
      callback = await begin('ins_2');
    },
  );
  expect(answer.status).toBe(303);
  const end = await browser.get(callback);
  expect([end.status, end.url.pathname]).toEqual([200, '/instances/ins_2']);
  await expectToSee('ins_1');
});

it('a company that is taken off the list while a slow disconnect goes on in another tab stays off it', async () => {
  await install(browser, 'ins_2');
  const page = await install(browser, 'ins_1');
  const gone = web.domain.instances.get('ins_2');
  web.domain.instances.set('ins_2', { ...gone, status: 'disconnected', has_copy: false } as never);
  const forget = (await browser.get('/instances/ins_2')).form('/instances/ins_2/forget');
  const end = await meanwhile(
    'disconnect',
    () => browser.submit(page.form('/instances/ins_1/disconnect')),
    () => browser.submit(forget, {}, { follow: false }),
  );
  expect(end.url.pathname).toBe('/instances/ins_1');
  expect((await browser.get('/instances/ins_2')).status).toBe(404);
  expect((await browser.get('/')).body).not.toContain('/instances/ins_2');
});

it.each(['/', '/instances/ins_1'])(
  'an install that begins while %s with a message is on its way ends on its dashboard',
  async (path) => {
    await browser.get(await begin('ins_1'), { follow: false });
    let callback = '';
    const page = await meanwhile(
      'status',
      () => browser.get(path),
      async () => {
        callback = await begin('ins_2');
      },
    );
    expect(page.body).toContain('Authorized. The sync is on its way.');
    const end = await browser.get(callback);
    expect([end.status, end.url.pathname]).toEqual([200, '/instances/ins_2']);
  },
);

it('of two pages at once one shows the message, and the forms of both are good', async () => {
  await browser.get(await begin('ins_1'), { follow: false });
  let second: HttpPage | undefined;
  const first = await meanwhile(
    'status',
    () => browser.get('/instances/ins_1'),
    async () => {
      second = await browser.get('/instances/ins_1');
    },
  );
  const pages = [first, second as HttpPage];
  expect(pages.filter(({ body }) => body.includes('Authorized. The sync')).length).toBe(1);
  for (const page of pages) {
    const answer = await browser.submit(page.form('/instances/ins_1/sync'), {}, { follow: false });
    expect(answer.status).toBe(303);
  }
});

it('what changes nothing of a session writes nothing but its expiry', async () => {
  await install(browser, 'ins_1');
  const callback = await begin('ins_2');
  const late = cookiesNow();
  await browser.get(callback);
  await browser.get('/');
  const [name = ''] = await web.redis.keys('session:*');
  const before = await web.redis.get(name);
  await web.redis.expire(name, 60);
  // An answer that was missed: it is led into the session, whose cookie it has not sent.
  const answer = await web.browser().get(callback, late);
  expect(answer.location?.pathname).toBe('/instances/ins_2');
  for (const path of ['/', '/instances/ins_1', '/instances/ins_1/status']) await browser.get(path);
  expect(await web.redis.get(name)).toBe(before);
  expect(await web.redis.ttl(name)).toBeGreaterThan(29 * 86_400);
});
