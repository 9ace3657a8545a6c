import { once } from 'node:events';
import type { AddressInfo } from 'node:net';
import express, { type ErrorRequestHandler } from 'express';
import type { Redis } from 'ioredis';
import { afterAll, beforeEach, describe, expect, it, test } from 'vitest';
import { createRedis } from '../../src/runtime/redis.ts';
import { operatorGate } from '../../src/web/operator-gate.ts';
import type { WebError } from '../../src/web/web-error.ts';
import { startTcpProxy, type TcpProxy } from '../support/tcp-proxy.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

const PASSWORD = 'correct: hörse';
const LIMITS = { operator: 3, operatorInAll: 8 };

const closers: (() => void)[] = [];
afterAll(() => {
  for (const close of closers) close();
});

const answerError: ErrorRequestHandler = ({ status, options }: WebError, _req, res, _next) => {
  res.set('Retry-After', String(options.retryAfterSeconds)).status(status).send(options.advice);
};

/** Starts a process with the gate, behind a proxy that says who asks. */
async function startGate(redis: Redis): Promise<string> {
  const app = express().set('trust proxy', 1);
  app.get('/ops', operatorGate(PASSWORD, redis, LIMITS), (_req, res) => void res.send('open'));
  const server = app.use(answerError).listen(0, '127.0.0.1');
  closers.push(() => server.close());
  await once(server, 'listening');
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/ops`;
}

async function attempt(url: string, password: string, address: string): Promise<Response> {
  const authorization = `Basic ${Buffer.from(`anyone:${password}`).toString('base64')}`;
  return fetch(url, { headers: { authorization, 'x-forwarded-for': address } });
}

describe('two processes with one Redis', async () => {
  const redis = createRedis((await startTestRedis()).url, 'general', testLogger().logger);
  closers.push(() => redis.disconnect());
  await once(redis, 'ready');
  const processes = [await startGate(redis), await startGate(redis)];
  beforeEach(() => redis.flushall());

  let turn = 0;
  const ask = (password: string, address: string) => attempt(processes[turn++ % 2] ?? '', password, address);
  const statusOf = async (password: string, address: string) => (await ask(password, address)).status;
  async function guess(address: string | ((n: number) => string), times = 1): Promise<number[]> {
    const statuses: number[] = [];
    for (let n = 1; n <= times; n += 1) {
      statuses.push(await statusOf(`guess ${n}`, typeof address === 'string' ? address : address(n)));
    }
    return statuses;
  }

  it('make an address wait, the right password too, and say how long; others do not wait', async () => {
    expect(await guess('203.0.113.1', 4)).toEqual([401, 401, 401, 429]);
    const held = await ask(PASSWORD, '203.0.113.1');
    expect(held.status).toBe(429);
    const seconds = Number(held.headers.get('retry-after'));
    expect(seconds).toBeGreaterThan(0);
    expect(seconds).toBeLessThanOrEqual(60);
    expect(await held.text()).toContain(`Try again in ${seconds} second`);
    expect(await statusOf(PASSWORD, '203.0.113.2')).toBe(200);
  });

  it('forgive when the time is over, which refused attempts do not prolong', async () => {
    await guess('203.0.113.1', 5);
    const key = 'limit:operator:203.0.113.1';
    const left = await redis.pttl(key);
    expect(left).toBeGreaterThan(0);
    await guess('203.0.113.1', 5);
    expect(await redis.pttl(key)).toBeLessThanOrEqual(left);
    await redis.del(key);
    expect(await statusOf(PASSWORD, '203.0.113.1')).toBe(200);
  });

  it('are not guessed sooner by many addresses, nor by what a client writes itself', async () => {
    const statuses = await guess((n) => `spoofed-${n}, 198.51.100.${n}`, 10);
    expect(statuses).toEqual([...Array(8).fill(401), 429, 429]);
    expect((await guess('spoofed-11, 198.51.100.1', 3)).at(-1)).toBe(429);
  });

  it('take an address for the same one whatever port a proxy writes behind it', async () => {
    expect(await statusOf(PASSWORD, '203.0.113.7:50001')).toBe(200);
    expect(await guess((n) => `203.0.113.1:${40_000 + n}`, 4)).toEqual([401, 401, 401, 429]);
    await guess((n) => `198.51.100.${n}`, 10);
    expect(await statusOf(PASSWORD, '203.0.113.7:50002')).toBe(200);
  });

  it('do not lock out an operator who got in before', async () => {
    expect(await statusOf(PASSWORD, '203.0.113.7')).toBe(200);
    await guess((n) => `198.51.100.${n}`, 10);
    expect(await statusOf(PASSWORD, '203.0.113.8')).toBe(429);
    expect(await statusOf(PASSWORD, '203.0.113.7')).toBe(200);
  });

  it('count no success: not for its address, not for all', async () => {
    for (let n = 1; n <= 10; n += 1) expect(await statusOf(PASSWORD, `203.0.113.${n}`)).toBe(200);
    for (let n = 0; n < 10; n += 1) expect(await statusOf(PASSWORD, '203.0.113.9')).toBe(200);
  });

  it('know an address for a day from when it got in last', async () => {
    const key = 'limit:operator-known:203.0.113.7';
    await ask(PASSWORD, '203.0.113.7');
    expect(Math.round((await redis.ttl(key)) / 3_600)).toBe(24);
    await redis.expire(key, 3_600);
    await ask(PASSWORD, '203.0.113.7');
    expect(Math.round((await redis.ttl(key)) / 3_600)).toBe(24);
  });

  it('count the addresses of one IPv6 network as one', async () => {
    const addresses = ['2001:db8:1:2::1', '2001:db8:1:2:ffff::', '2001:0db8:0001:0002:0:0:0:9'];
    for (const address of addresses) expect(await guess(address)).toEqual([401]);
    expect(await guess('2001:db8:1:2::4')).toEqual([429]);
    expect(await guess('2001:db8:1:3::1')).toEqual([401]);
    expect(await guess('::1')).toEqual([401]);
  });

  it('count an IPv4 address as itself, also as one who listens for IPv6 sees it', async () => {
    expect(await guess('::ffff:203.0.113.1', 4)).toEqual([401, 401, 401, 429]);
    expect(await guess('203.0.113.1')).toEqual([429]);
    expect(await guess('::ffff:203.0.113.2')).toEqual([401]);
  });
});

test.each([
  ['away', (proxy: TcpProxy) => proxy.refuse()],
  ['silent', (proxy: TcpProxy) => proxy.silence()],
])('while Redis is %s, a process counts by itself, and lets the operator in', async (_how, take) => {
  const redisUrl = new URL((await startTestRedis()).url);
  const proxy = await startTcpProxy(Number(redisUrl.port));
  redisUrl.port = String(proxy.port);
  const redis = createRedis(redisUrl.href, 'general', testLogger().logger);
  closers.push(() => redis.disconnect());
  await once(redis, 'ready');
  const url = await startGate(redis);
  await take(proxy);
  const startedAt = performance.now();
  expect((await attempt(url, PASSWORD, '203.0.113.1')).status).toBe(200);
  expect(performance.now() - startedAt).toBeLessThan(5_000);
  const guesses = await Promise.all([1, 2, 3, 4].map((n) => attempt(url, `${n}`, '203.0.113.2')));
  expect(guesses.map(({ status }) => status).toSorted()).toEqual([401, 401, 401, 429]);
  expect((await attempt(url, PASSWORD, '203.0.113.1')).status).toBe(200);
});
