import { once } from 'node:events';
import { connect } from 'node:net';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LONGEST_INSTALL_MS } from '../../src/install/longest-install.ts';
import { type TakenPort, takePort } from '../../src/web/listen.ts';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

let web: StartedWeb;
let browser: HttpSession;
let exchange: PromiseWithResolvers<void>;
let asked: PromiseWithResolvers<void>;
const listening: TakenPort[] = [];

beforeEach(async () => {
  web = await startWeb(web ? { redis: web.redis } : {});
  await web.redis.flushall();
  browser = web.browser();
  exchange = Promise.withResolvers();
  asked = Promise.withResolvers();
  web.domain.exchange = () => {
    asked.resolve();
    return exchange.promise;
  };
});

afterEach(async () => {
  vi.restoreAllMocks();
  for (const each of listening.splice(0)) await each.close();
});

async function begin(): Promise<string> {
  const { location } = await browser.get('/install', { follow: false });
  return `/oauth/callback?code=ins_1&state=${location?.searchParams.get('state')}`;
}

/** Begins installs in two tabs at once; answers their callbacks, for `ins_1` and `ins_2`. */
async function beginTwo(): Promise<string[]> {
  const answers = await Promise.all([1, 2].map(() => browser.get('/install', { follow: false })));
  return answers.map(
    ({ location }, n) => `/oauth/callback?code=ins_${n + 1}&state=${location?.searchParams.get('state')}`,
  );
}

/** Takes its turn from the install that is under way, as if its process or Redis had stood still; answers its name. */
async function loseTurn(): Promise<string> {
  const [turn = ''] = await web.redis.keys('install:{*}:turn');
  expect(await web.redis.del(turn)).toBe(1);
  return turn;
}

test('a second click waits for the first as long as any install takes, and both end on the dashboard', async () => {
  const address = await begin();
  const first = browser.get(address);
  await asked.promise;
  const [turn = ''] = await web.redis.keys('install:{*}:turn');
  const second = browser.get(address);
  const now = performance.now.bind(performance);
  vi.spyOn(performance, 'now').mockImplementation(() => now() + LONGEST_INSTALL_MS);
  let leftMs = await web.redis.pttl(turn);
  for (let renewals = 0; renewals < 2; renewals++) {
    await waitFor(async () => {
      const before = leftMs;
      leftMs = await web.redis.pttl(turn);
      return leftMs > before;
    });
  }
  exchange.resolve();
  const pages = await Promise.all([first, second]);
  expect(pages.map(({ status, url }) => [status, url.pathname])).toEqual([
    [200, '/instances/ins_1'],
    [200, '/instances/ins_1'],
  ]);
  expect(web.domain.calls).toEqual(['exchange ins_1']);
});

test('a second click that gets the turn of the first, whose process stood still, ends on the dashboard with it', async () => {
  const address = await begin();
  const first = browser.get(address);
  await asked.promise;
  const turn = await loseTurn();
  const second = browser.get(address);
  await waitFor(async () => (await web.redis.exists(turn)) === 1);
  exchange.resolve();
  const pages = await Promise.all([first, second]);
  expect(pages.map(({ status, url }) => [status, url.pathname])).toEqual([
    [200, '/instances/ins_1'],
    [200, '/instances/ins_1'],
  ]);
  expect(web.domain.calls).toEqual(['exchange ins_1']);
});

test('an install that loses its turn to another tab’s, as its process stood still, is seen beside all the others', async () => {
  web.domain.exchange = async () => {};
  await install(browser, 'ins_0');
  web.domain.exchange = () => {
    asked.resolve();
    return exchange.promise;
  };
  const first = browser.get(await begin());
  await asked.promise;
  await loseTurn();
  web.domain.exchange = async () => {};
  await install(browser, 'ins_2');
  exchange.resolve();
  const { status, url } = await first;
  expect([status, url.pathname]).toEqual([200, '/instances/ins_1']);
  for (const id of ['ins_0', 'ins_1', 'ins_2']) {
    expect((await browser.get(`/instances/${id}`)).status, id).toBe(200);
  }
});

test.each([
  ['ins_1', 'ins_2'],
  ['ins_2', 'ins_1'],
])(
  'so it is where two tabs begin at once in a browser that is new: %s late, %s first',
  async (late, early) => {
    const callbacks = await beginTwo();
    const [lateOne = '', earlyOne = ''] = late === 'ins_1' ? callbacks : callbacks.toReversed();
    const first = browser.get(lateOne);
    await asked.promise;
    await loseTurn();
    web.domain.exchange = async () => {};
    await browser.get(earlyOne);
    exchange.resolve();
    const { status, url } = await first;
    expect([status, url.pathname]).toEqual([200, `/instances/${late}`]);
    expect((await browser.get(`/instances/${early}`)).status).toBe(200);
  },
);

test('an install that loses its turn is not seen by who logs out before it has come for it', async () => {
  const [callback = '', other = ''] = await beginTwo();
  const first = browser.get(callback, { follow: false });
  await asked.promise;
  await loseTurn();
  web.domain.exchange = async () => {};
  await browser.get(other);
  exchange.resolve();
  expect((await first).location?.pathname).toBe('/oauth/callback');
  await browser.submit((await browser.get('/')).form('/logout'));
  expect((await browser.get(callback)).status).toBe(400);
  expect((await browser.get('/instances/ins_1')).status).toBe(404);
});

test('an install that loses its turn is not seen by who comes for it when its access has been ended', async () => {
  const first = browser.get(await begin(), { follow: false });
  await asked.promise;
  await loseTurn();
  web.domain.exchange = async () => {};
  await install(browser, 'ins_2');
  exchange.resolve();
  const again = await first;
  expect(again.location?.pathname).toBe('/oauth/callback');
  expect(again.headers.getSetCookie().join()).not.toContain(SESSION_COOKIE);
  await web.domain.control.endAccess('ins_1', 1);
  expect((await browser.get(again.location ?? '')).status).toBe(400);
  expect((await browser.get('/instances/ins_1')).status).toBe(404);
});

test('an install that takes longer than a connection may be silent ends with its page', async () => {
  const patient = await takePort({ host: '127.0.0.1', port: 0, variable: 'PORT' }, { silentMs: 300 });
  patient.serve(() => web.app);
  listening.push(patient);
  const address = await begin();
  const cookie = browser.cookies.header(new URL(web.url)) ?? '';
  const callback = fetch(`http://127.0.0.1:${patient.port}${address}`, {
    headers: { cookie },
    redirect: 'manual',
  });
  await asked.promise;
  // What is silent for nothing, and began later, has ended by then.
  const other = connect(patient.port, '127.0.0.1')
    .on('error', () => {})
    .resume();
  await once(other, 'close');
  exchange.resolve();
  expect((await callback).headers.get('location')).toBe('/instances/ins_1');
});
