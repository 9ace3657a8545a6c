import { once } from 'node:events';
import { type AddressInfo, connect, createServer, type Socket } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { createRedis } from '../../src/runtime/redis.ts';
import { sessionClient } from '../../src/web/redis-session-client.ts';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import { connectThroughGate } from '../support/redis-gate.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { install, startWeb } from './start-web.ts';

const redisUrl = (await startTestRedis()).url;
const direct = new Redis(redisUrl);
afterAll(() => direct.disconnect());

/** The connection of a process that is killed where it ends a session, from the moment on that `watch` is armed. */
async function connectDying(dies: 'before' | 'after') {
  const watch = { isArmed: false, isDead: false };
  const clients = new Set<Socket>();
  const proxy = createServer((client) => {
    clients.add(client);
    const target = connect(Number(new URL(redisUrl).port), '127.0.0.1');
    target.on('data', (chunk) => client.write(chunk));
    client.on('data', (chunk) => {
      const isEnd = watch.isArmed && chunk.includes('ended-session:');
      watch.isDead ||= isEnd;
      if (!isEnd) return void target.write(chunk);
      if (dies === 'after') target.end(chunk);
      proxy.close();
      for (const other of clients) other.destroy();
    });
    for (const end of [client, target]) end.on('error', () => undefined);
    client.on('close', () => target.end());
  }).listen(0, '127.0.0.1');
  await once(proxy, 'listening');
  const url = new URL(redisUrl);
  url.port = String((proxy.address() as AddressInfo).port);
  const redis = createRedis(url.href, 'general', testLogger().logger);
  afterAll(() => {
    redis.disconnect();
    if (proxy.listening) proxy.close();
  });
  return { redis, watch };
}

test.each(['before', 'after'] as const)(
  'a process that is killed %s it ends the session from before an install takes no company away',
  async (dies) => {
    const { redis, watch } = await connectDying(dies);
    const dying = await startWeb({ redis });
    const other = await startWeb({
      redis: direct,
      publicUrl: dying.url,
      control: dying.domain.control,
      installer: dying.domain.installer,
    });
    const browser = dying.browser();
    await install(browser, 'ins_1');
    const begun = await browser.get('/install', { follow: false });
    const callback = `/oauth/callback?state=${begun.location?.searchParams.get('state')}&code=ins_2`;
    // A browser that gets no answer keeps the cookie from before.
    const cookie = browser.cookies.header(new URL(dying.url)) ?? '';

    watch.isArmed = true;
    const answer = await browser.get(callback, { headers: { cookie }, follow: false });
    expect([answer.status, watch.isDead]).toEqual([503, true]);
    const kept = answer.headers.getSetCookie().filter((set) => set.startsWith(`${SESSION_COOKIE}=`));
    if (dies === 'before') expect(kept).toEqual([]);

    const get = (path: string, sent: string) =>
      fetch(other.url + path, { headers: { cookie: sent }, redirect: 'manual' });
    if (dies === 'before') {
      expect((await get('/instances/ins_1', cookie)).status).toBe(200);
      return;
    }
    expect((await get('/instances/ins_1', cookie)).status).toBe(404);
    const again = await get(callback, cookie);
    expect(again.headers.get('location')).toBe('/instances/ins_2');
    const newer = again.headers.getSetCookie().find((set) => set.startsWith(`${SESSION_COOKIE}=`)) ?? '';
    for (const id of ['ins_1', 'ins_2']) {
      expect((await get(`/instances/${id}`, newer.split(';')[0] ?? '')).status, id).toBe(200);
    }
  },
);

/** A browser that sees one company, and is about to come back from the consent page for a second one. */
async function comeBack(redis: Redis) {
  const web = await startWeb({ redis });
  const browser = web.browser();
  await install(browser, 'ins_1');
  const begun = await browser.get('/install', { follow: false });
  const callback = `/oauth/callback?state=${begun.location?.searchParams.get('state')}&code=ins_2`;
  return { browser, callback };
}

/** What only the end of a session says on its way to Redis. */
const END = 'ended-session:';

test('a replacement that comes to Redis after the page has said that it could not be done takes no company away', async () => {
  await direct.flushall();
  const { redis, arm, release } = await connectThroughGate(redisUrl);
  const { browser, callback } = await comeBack(redis);
  const keys = async () =>
    (await direct.keys('*')).filter((key) => /^(?:install-)?session:/.test(key)).sort();
  const before = await keys();
  const held = arm(END, 'hold');
  const answer = browser.get(callback, { follow: false });
  await held;
  const { status, body, headers } = await answer;
  expect(status).toBe(503);
  expect(body).toContain('The company is installed');
  expect(body).toContain('Nothing is lost');
  expect(body).toContain('install again to see the company here');
  expect(headers.getSetCookie().filter((set) => set.startsWith(`${SESSION_COOKIE}=`))).toEqual([]);
  release();
  // It comes after the late command, on the same connection.
  await redis.ping();
  expect(await keys()).toEqual(before);
  expect((await browser.get('/instances/ins_1')).status).toBe(200);
  // As the page has said: the code is spent.
  expect((await browser.get(callback)).body).toContain('This install cannot be finished');
  await install(browser, 'ins_2');
  for (const id of ['ins_1', 'ins_2']) expect((await browser.get(`/instances/${id}`)).status, id).toBe(200);
});

test('a replacement whose answer got lost, and that is sent again, is done once', async () => {
  await direct.flushall();
  const { redis, arm } = await connectThroughGate(redisUrl);
  const { browser, callback } = await comeBack(redis);
  const lost = arm(END, 'lose answer');
  const dashboard = await browser.get(callback);
  await lost;
  expect([dashboard.status, dashboard.url.pathname]).toEqual([200, '/instances/ins_2']);
  expect((await browser.get('/instances/ins_1')).status).toBe(200);
  expect((await direct.keys('session:*')).length).toBe(1);
});

test('a callback whose claim of its state is sent again, as the answer got lost, is no second one', async () => {
  await direct.flushall();
  const { redis, arm } = await connectThroughGate(redisUrl);
  const { browser, callback } = await comeBack(redis);
  const lost = arm('install-claim:', 'lose answer');
  const dashboard = await browser.get(callback);
  await lost;
  expect([dashboard.status, dashboard.url.pathname]).toEqual([200, '/instances/ins_2']);
});

test('a callback whose claim comes to Redis when nobody waits for it any more claims nothing: a reload installs', async () => {
  await direct.flushall();
  const { redis, arm, release } = await connectThroughGate(redisUrl);
  const { browser, callback } = await comeBack(redis);
  const held = arm('install-claim:', 'hold');
  const late = browser.get(callback);
  await held;
  expect((await late).status).toBe(503);
  release();
  // What is behind it on the connection has been done then.
  await redis.ping();
  const dashboard = await browser.get(callback);
  expect([dashboard.status, dashboard.url.pathname]).toEqual([200, '/instances/ins_2']);
});

test('a replacement that is sent again after a log-out has ended what it made brings nothing back', async () => {
  await direct.flushall();
  const client = sessionClient(direct);
  const [endedKey, key] = ['session:from-before', 'session:newer'];
  const replacement = { endedKey, isKept: false, logOutFollows: true, key, value: '{}', seconds: 60 };
  expect(await client.replace(replacement)).toBe(true);
  expect(await client.del([endedKey])).toBe(1);
  expect(await client.replace(replacement)).toBe(false);
  expect(await direct.keys('session:*')).toEqual([]);
});
