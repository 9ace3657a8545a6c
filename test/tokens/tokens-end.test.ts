import { randomBytes } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { accessTokenFrom } from './access-token.ts';
import { tokenProcess } from './token-process.ts';
import { startTokenServer } from './token-server.ts';

const HOUR_MS = 60 * 60_000;
const ANSWER = { access_token: 'at-1', refresh_token: 'rt-1', token_type: 'Bearer' };
const STOPPED = { remedy: 'wait', message: expect.stringContaining('being stopped') };

const server = await startTokenServer();
const redis = new Redis((await startTestRedis()).url);
const db = await openDatabase(`file:${tempDir()}/app.db`);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});

const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
let id: string;
let count = 0;
let one: ReturnType<typeof newProcess>;

function newProcess() {
  return tokenProcess({ db, redis, vault, clock: new ServiceClock(), authUrl: server.url });
}

beforeEach(async () => {
  id = `ins_${++count}`;
  server.requests.length = 0;
  one = newProcess();
  const grantedAt = Date.now();
  await one.tokens.install(
    { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: grantedAt },
    { accessToken: 'at-0', refreshToken: 'rt-0', grantedAt, accessExpiresAt: grantedAt + HOUR_MS },
  );
});

async function stored(): Promise<string> {
  const row = await one.store.find(id);
  return vault.open(row?.refresh_token ?? '', { instanceId: id, purpose: 'refresh_token' });
}

test('a process that ends waits for no other one’s refresh, and begins none', async () => {
  const held = server.holdAnswer();
  const refreshing = one.tokens.rotate(id);
  await held.asked;
  const other = newProcess();
  const waiting = accessTokenFrom(other.tokens, id, 'at-0');
  const isTold = expect(waiting).rejects.toMatchObject(STOPPED);
  other.tokens.end();
  // Before the other refresh has come to its end.
  await isTold;
  held.answer(200, ANSWER);
  await refreshing;
  expect(await stored()).toBe('rt-1');
  // The lock is free now, and the token is rejected once more.
  await expect(accessTokenFrom(other.tokens, id, 'at-1')).rejects.toMatchObject(STOPPED);
  expect(server.requests.length).toBe(1);
  // What needs no refresh is as it was.
  expect(await accessTokenFrom(other.tokens, id)).toBe('at-1');
});

test('an answer that comes after the end has begun is kept', async () => {
  const held = server.holdAnswer();
  const refreshing = one.tokens.rotate(id);
  await held.asked;
  one.tokens.end();
  held.answer(200, ANSWER);
  await refreshing;
  expect(await stored()).toBe('rt-1');
});

test('one that does not come in time is given up on, and the refresh token is used again', async () => {
  const held = server.holdAnswer();
  const refreshing = one.tokens.rotate(id);
  await held.asked;
  const isTold = expect(refreshing).rejects.toMatchObject(STOPPED);
  one.tokens.end(0);
  await isTold;
  expect(await stored()).toBe('rt-0');
  server.answerRefreshes({ rotating: true });
  // At once: nothing was wrong with the token route.
  await newProcess().tokens.rotate(id);
  expect(await stored()).toBe('rt-1');
});

test('an answer whose time is hard to believe is kept, though the end leaves no time to ask about it', async () => {
  const asked = Promise.withResolvers<void>();
  server.answer = (response) => {
    if (server.requests.at(-1)?.method === 'HEAD') return asked.resolve();
    response.writeHead(200, { 'content-type': 'application/json', date: 'Sat, 01 Mar 2031 12:00:00 GMT' });
    response.end(JSON.stringify(ANSWER));
  };
  const refreshing = one.tokens.rotate(id);
  await asked.promise;
  one.tokens.end(0);
  await refreshing;
  expect(await stored()).toBe('rt-1');
});
