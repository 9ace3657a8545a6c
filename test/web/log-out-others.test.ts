import { once } from 'node:events';
import { request } from 'node:http';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, it } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import type { HttpSession } from '../support/http-session.ts';
import { connectThroughGate } from '../support/redis-gate.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, type StartedWeb, startWeb } from './start-web.ts';

const redisUrl = (await startTestRedis()).url;
const redis = new Redis(redisUrl);
afterAll(() => redis.disconnect());

let web: StartedWeb;
let browser: HttpSession;
beforeEach(async () => {
  await redis.flushall();
  web = await startWeb({ redis });
  browser = web.browser();
  await install(browser);
});

async function press() {
  const page = await browser.get('/instances/ins_1');
  return browser.submit(page.form('/instances/ins_1/logout-others'), {}, { follow: false });
}

/** Starts a web app whose commands to Redis can be held, with two browsers that see the company. */
async function startBehindGate() {
  const gate = await connectThroughGate(redisUrl);
  web = await startWeb({ redis: gate.redis });
  browser = web.browser();
  await install(browser);
  const other = web.browser();
  await install(other);
  return { gate, other };
}

async function watch(url: string, session: HttpSession, id = 'ins_1'): Promise<() => boolean> {
  const cookie = `${SESSION_COOKIE}=${session.cookies.get(new URL(web.url), SESSION_COOKIE)}`;
  const stream = request(`${url}/instances/${id}/live`, { headers: { cookie } }).end();
  afterAll(() => stream.destroy());
  const [answer] = await once(stream, 'response');
  expect(answer.statusCode).toBe(200);
  let ended = false;
  answer.resume().once('end', () => {
    ended = true;
  });
  return () => ended;
}

it('says what it does, carries the token of the session, and asks first', async () => {
  const { body } = await browser.get('/instances/ins_1');
  const [, shown = ''] = /<summary>Log out everywhere else<\/summary>(.*?)<\/details>/s.exec(body) ?? [];
  expect(shown).toContain('has to install it again to see it');
  expect(shown).toContain('The sync goes on.');
  for (const fields of [{}, { _csrf: 'guess' }]) {
    expect((await browser.post('/instances/ins_1/logout-others', fields)).status).toBe(403);
  }
  expect(web.domain.calls).toEqual(['exchange ins_1']);
});

it('ends the live streams of others, here and at other processes, and those of no other company', async () => {
  const elsewhere = await startWeb({
    redis,
    live: { keepAliveMs: 50 },
    control: web.domain.control,
    installer: web.domain.installer,
  });
  const other = web.browser();
  await install(other);
  await install(other, 'ins_2');
  const theirs = [await watch(web.url, other), await watch(elsewhere.url, other)];
  const unconcerned = await watch(elsewhere.url, other, 'ins_2');
  await press();
  await waitFor(() => theirs.every((ended) => ended()));
  expect(unconcerned()).toBe(false);
  const mine = await watch(elsewhere.url, browser);
  expect(mine()).toBe(false);
});

it('waits for an install that is on its way in another tab, and then wants a newer form', async () => {
  const gate = await connectThroughGate(redisUrl);
  web = await startWeb({ redis: gate.redis });
  browser = web.browser();
  const page = await install(browser);
  const begun = await browser.get('/install', { follow: false });
  const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
  const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
  web.domain.exchange = () => {
    ask();
    return answered;
  };
  const state = begun.location?.searchParams.get('state');
  const callback = browser.get(`/oauth/callback?code=ins_2&state=${state}`);
  await asked;
  const waits = gate.arm(':turn', 'pass');
  const pressed = browser.submit(page.form('/instances/ins_1/logout-others'));
  await Promise.race([waits, pressed]);
  answer();
  expect((await callback).url.pathname).toBe('/instances/ins_2');
  expect((await pressed).status).toBe(403);
  expect((await pressed).body).toContain('nothing was done');
  expect(web.domain.calls.filter((call) => call.startsWith('end access'))).toEqual([]);
  expect((await press()).status).toBe(303);
  for (const id of ['ins_1', 'ins_2']) expect((await browser.get(`/instances/${id}`)).status, id).toBe(200);
});

it.each(['logout-others', 'disconnect'])(
  'does nothing for a browser that %s of another one has logged out while it waited',
  async (action) => {
    const gate = await connectThroughGate(redisUrl);
    web = await startWeb({ redis: gate.redis });
    browser = web.browser();
    const other = web.browser();
    const theirs = await install(other);
    const mine = await install(browser);
    const begun = await other.get('/install', { follow: false });
    const { promise: asked, resolve: ask } = Promise.withResolvers<void>();
    const { promise: answered, resolve: answer } = Promise.withResolvers<void>();
    web.domain.exchange = () => {
      ask();
      return answered;
    };
    // An install that fails keeps the session, and its turn until then.
    web.domain.failure = 'denied';
    const state = begun.location?.searchParams.get('state');
    const callback = other.get(`/oauth/callback?code=ins_2&state=${state}`);
    await asked;
    const waits = gate.arm(':turn', 'pass');
    const late = other.submit(theirs.form('/instances/ins_1/logout-others'), {}, { follow: false });
    await waits;
    const first = await browser.submit(mine.form(`/instances/ins_1/${action}`), {}, { follow: false });
    expect(first.status).toBe(303);
    answer();
    await callback;
    expect((await late).status).toBe(404);
    expect((await other.get('/instances/ins_1')).status).toBe(404);
    expect((await browser.get('/instances/ins_1')).status).toBe(200);
  },
);

it('is final: a disconnect of another browser that had begun before does nothing', async () => {
  const other = web.browser();
  const theirs = await install(other);
  const { disconnect } = web.domain.control;
  const reached = Promise.withResolvers<void>();
  const loggedOut = Promise.withResolvers<void>();
  web.domain.control.disconnect = async (...args) => {
    reached.resolve();
    await loggedOut.promise;
    return disconnect(...args);
  };
  const slow = other.submit(theirs.form('/instances/ins_1/disconnect'), {}, { follow: false });
  await reached.promise;
  expect((await press()).status).toBe(303);
  loggedOut.resolve();
  expect((await slow).status).toBe(404);
  expect(web.domain.instances.get('ins_1')?.status).toBe('active');
  expect((await other.get('/instances/ins_1')).status).toBe(404);
});

it('says so when this browser logs out meanwhile in another tab: no store is away', async () => {
  const other = web.browser();
  await install(other);
  const form = (await browser.get('/')).form('/logout');
  const { endAccess } = web.domain.control;
  web.domain.control.endAccess = async (...args) => {
    const generation = await endAccess(...args);
    await browser.submit(form);
    return generation;
  };
  const page = await press();
  expect(page.status).toBe(403);
  expect(page.body).toContain('this one has logged out meanwhile, too.');
  for (const session of [browser, other]) expect((await session.get('/instances/ins_1')).status).toBe(404);
});

it('says so when it cannot be told whether this browser is logged out, too', async () => {
  const { gate, other } = await startBehindGate();
  const held = gate.arm('ended-session:', 'hold');
  const pressed = press();
  await held;
  const page = await pressed;
  gate.release();
  expect(page.status).toBe(503);
  expect(page.body).toContain('Other browsers are logged out of this company, and this one may be, too.');
  expect((await other.get('/instances/ins_1')).status).toBe(404);
});

it('says that it is done where Redis is away for seconds right behind it', async () => {
  const { gate, other } = await startBehindGate();
  const form = (await browser.get('/instances/ins_1')).form('/instances/ins_1/logout-others');
  const held = gate.arm('session-cookie:', 'hold');
  const pressed = browser.submit(form, {}, { follow: false });
  await held;
  expect((await pressed).status).toBe(303);
  gate.release();
  const { body } = await browser.get('/instances/ins_1');
  expect(body).toContain('Every other browser is logged out of this company.');
  expect((await other.get('/instances/ins_1')).status).toBe(404);
});

it('makes the forms of the session from before worthless: who copied one has none', async () => {
  const before = await browser.get('/instances/ins_1');
  await press();
  const old = await browser.submit(before.form('/instances/ins_1/pause'), {}, { follow: false });
  expect(old.status).toBe(403);
  expect(web.domain.calls).not.toContain('pause ins_1');
});

it('leads a callback that another browser reloads to a new start, not to what that sees no more', async () => {
  const other = web.browser();
  const begun = await other.get('/install', { follow: false });
  const callback = `/oauth/callback?code=ins_1&state=${begun.location?.searchParams.get('state')}`;
  for (let n = 0; n < 2; n += 1) expect((await other.get(callback)).url.pathname).toBe('/instances/ins_1');
  const before = web.domain.calls.length;
  await press();
  const reloaded = await other.get(callback);
  expect([reloaded.status, reloaded.url.pathname]).toEqual([400, '/oauth/callback']);
  expect(reloaded.body).toContain('>Start again<');
  expect(web.domain.calls.slice(before)).toEqual(['end access ins_1']);
});
