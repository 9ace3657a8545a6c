import { once } from 'node:events';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Agent, getGlobalDispatcher, setGlobalDispatcher } from 'undici';
import { afterAll, expect, onTestFinished, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { ServiceTime, settleTime } from '../../src/client/service-time.ts';
import { findFreePort } from '../support/free-port.ts';

const THERE = Date.UTC(2031, 5, 1, 12, 0, 0);

const seen: IncomingMessage[] = [];
let date: string | undefined = new Date(THERE).toUTCString();
/** Told before that, one an answer. */
let dates: string[] = [];
let age: string | undefined;
const server = createServer((request, response) => {
  seen.push(request);
  response.sendDate = false;
  const told = dates.shift() ?? date;
  if (told !== undefined) response.setHeader('date', told);
  if (age !== undefined) response.setHeader('age', age);
  response.writeHead(404).end();
}).listen(0, '127.0.0.1');
await once(server, 'listening');
const authUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}/auth`;

afterAll(() => {
  server.closeAllConnections();
  server.close();
});

test('any answer tells the time, and no token is sent for it', async () => {
  const clock = new ServiceClock(() => THERE - 50_000);
  const before = seen.length;
  await new ServiceTime(clock, authUrl).refresh();
  expect(Math.abs(clock.now() - THERE)).toBeLessThan(2_000);
  expect(seen.slice(before).map(({ method, url }) => [method, url])).toEqual([['HEAD', '/auth']]);
  expect(seen.at(-1)?.headers.authorization).toBeUndefined();
});

test('no cache is to answer in the place of the host', async () => {
  await new ServiceTime(new ServiceClock(() => THERE), authUrl).refresh();
  expect(seen.at(-1)?.headers['cache-control']).toBe('no-cache');
});

test('who sets how all requests of the process are sent does not keep the time away', async () => {
  const before = getGlobalDispatcher();
  onTestFinished(() => setGlobalDispatcher(before));
  setGlobalDispatcher(new Agent({ connect: (_options, done) => done(new Error('no way out'), null) }));
  const clock = new ServiceClock(() => THERE - 50_000);
  await new ServiceTime(clock, authUrl).refresh();
  expect(clock.now()).toBeGreaterThanOrEqual(THERE);
});

test.each(['1', '3600', 'old', '0, 60'])(
  'an answer that a cache has kept (age: %s) tells no time: it was written when that one was asked',
  async (said) => {
    const clock = new ServiceClock(() => THERE + 600_000);
    age = said;
    await new ServiceTime(clock, authUrl).refresh();
    await settleTime(clock, authUrl, getGlobalDispatcher());
    age = undefined;
    expect(clock.now()).toBe(THERE + 600_000);
    expect(clock.age()).toBe(Number.POSITIVE_INFINITY);
  },
);

test('one that a cache has passed on at once tells the time', async () => {
  const clock = new ServiceClock(() => THERE - 50_000);
  age = '0';
  await new ServiceTime(clock, authUrl).refresh();
  age = undefined;
  expect(Math.abs(clock.now() - THERE)).toBeLessThan(2_000);
});

test.each([10, 60, 400 * 24 * 60])(
  'a time that is hard to believe is asked for twice: both have to say it (%d minutes away)',
  async (minutes) => {
    const clock = new ServiceClock(() => THERE - minutes * 60_000);
    const before = seen.length;
    await new ServiceTime(clock, authUrl).refresh();
    expect(seen.length).toBe(before + 2);
    expect(Math.abs(clock.now() - THERE)).toBeLessThan(2_000);
  },
);

test('one wrong answer among others is asked about until two agree, with our clock wrong, too', async () => {
  const own = THERE - 600_000;
  const clock = new ServiceClock(() => own);
  const before = seen.length;
  dates = [THERE, THERE + 7_200_000].map((moment) => new Date(moment).toUTCString());
  await new ServiceTime(clock, authUrl).refresh();
  expect(seen.length).toBe(before + 4);
  expect(Math.abs(clock.now() - THERE)).toBeLessThan(2_000);
});

test('it asks only when no answer has told the time lately', async () => {
  let own = THERE;
  const clock = new ServiceClock(() => own);
  const time = new ServiceTime(clock, authUrl, 1_000);
  const before = seen.length;
  clock.observe(new Date(THERE).toUTCString());
  own += 999;
  await time.refresh();
  expect(seen.length).toBe(before);
  own += 1;
  await time.refresh();
  expect(seen.length).toBe(before + 1);
  await time.refresh();
  expect(seen.length).toBe(before + 1);
});

test('without a Date, or without an answer, the clock stays as it is', async () => {
  const clock = new ServiceClock(() => 1_000);
  date = undefined;
  await new ServiceTime(clock, authUrl).refresh();
  await new ServiceTime(clock, `http://127.0.0.1:${await findFreePort()}`).refresh();
  expect(clock.now()).toBe(1_000);
  expect(clock.age()).toBe(Number.POSITIVE_INFINITY);
});
