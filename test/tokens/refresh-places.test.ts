import { randomBytes } from 'node:crypto';
import type { ServerResponse } from 'node:http';
import { Redis } from 'ioredis';
import { afterAll, afterEach, expect, test, vi } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { RefreshPlaces } from '../../src/tokens/refresh-places.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import { tokenProcess } from './token-process.ts';
import { startTokenServer } from './token-server.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const COMPANIES = 100;
/** So many grants a process may lose that is killed. */
const MOST = 12;

const server = await startTokenServer();
const redis = new Redis((await startTestRedis()).url);
const db = await openDatabase(`file:${tempDir()}/app.db`);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});
const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
const { tokens, store } = tokenProcess({
  db,
  redis,
  vault,
  clock: new ServiceClock(() => NOW),
  authUrl: server.url,
});

/** How many refreshes are in the store. */
async function stored(): Promise<number> {
  const rows = await Promise.all(ids.map((id) => store.find(id)));
  return rows.reduce((sum, row) => sum + (row?.refreshes ?? 0), 0);
}

afterEach(() => {
  vi.useRealTimers();
});

const ids = Array.from({ length: COMPANIES }, (_, at) => `ins_${at}`);

test('of many companies whose access tokens have ended together, a process has a dozen grants under way that it could lose', async () => {
  for (const id of ids) {
    const grant = {
      accessToken: 'at-0',
      refreshToken: 'rt-0',
      grantedAt: NOW - 7_200_000,
      accessExpiresAt: NOW - 1,
    };
    await tokens.install({ id, companyId: `cmp_${id}`, name: id, installedAt: NOW }, grant);
  }
  // However slow the machine is, none is slow.
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const asked: ServerResponse[] = [];
  server.answer = (response) => {
    response.sendDate = false;
    asked.push(response);
  };
  const renewed = ids.map((id) => accessTokenFrom(tokens, id));
  for (let answered = 0; answered < COMPANIES; answered++) {
    const most = Math.min(COMPANIES - answered, MOST);
    await waitFor(() => asked.length === most);
    // Whoever is asked for next is asked for after this one is on the disk.
    expect(await stored()).toBe(answered);
    asked
      .shift()
      ?.writeHead(200, { 'content-type': 'application/json' })
      .end(JSON.stringify({ access_token: `at-${answered}`, refresh_token: `rt-${answered}` }));
    await waitFor(async () => (await stored()) === answered + 1);
  }
  expect(new Set(await Promise.all(renewed)).size).toBe(COMPANIES);
});

test('whoever waits for a place is let go by a signal, and its place is nobody’s then', async () => {
  const places = new RefreshPlaces(1);
  const first = Promise.withResolvers<string>();
  const stop = new AbortController();
  const never = new AbortController().signal;
  const done: string[] = [];
  const note = (name: string) => async () => done.push(name);
  const working = places.within(() => first.promise, never);
  const given = expect(places.within(note('given up'), stop.signal)).rejects.toThrow('over');
  const next = places.within(note('next'), never);
  stop.abort(new Error('over'));
  await given;
  await expect(places.within(note('too late'), stop.signal)).rejects.toThrow('over');
  expect(done).toEqual([]);
  first.resolve('first');
  expect(await working).toBe('first');
  await next;
  await expect(places.within(() => Promise.reject(new Error('wrong')), never)).rejects.toThrow('wrong');
  await places.within(note('last'), never);
  expect(done).toEqual(['next', 'last']);
});

test('what takes long leaves its place to others, once, and goes on', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout'] });
  const places = new RefreshPlaces(1);
  const never = new AbortController().signal;
  const slow = [Promise.withResolvers<string>(), Promise.withResolvers<string>()] as const;
  const begun: string[] = [];
  const working = slow.map(({ promise }, at) =>
    places.within(() => {
      begun.push(`slow ${at}`);
      return promise;
    }, never),
  );
  const last = places.within(async () => begun.push('last'), never);
  await vi.advanceTimersByTimeAsync(1_999);
  expect(begun).toEqual(['slow 0']);
  await vi.advanceTimersByTimeAsync(1);
  expect(begun).toEqual(['slow 0', 'slow 1']);
  // It has no place any more that it could give back.
  slow[0].resolve('0');
  expect(await working[0]).toBe('0');
  expect(begun).toEqual(['slow 0', 'slow 1']);
  slow[1].resolve('1');
  await last;
  expect(begun).toEqual(['slow 0', 'slow 1', 'last']);
});
