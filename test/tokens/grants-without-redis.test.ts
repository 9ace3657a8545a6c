import { randomBytes } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import { tokenProcess } from './token-process.ts';
import { startTokenServer } from './token-server.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const HOUR_MS = 60 * 60_000;
const ANSWER = { access_token: 'at-1', refresh_token: 'rt-1', token_type: 'Bearer' };

const server = await startTokenServer();
const redisServer = await startRedisServer();
// Its commands wait for an answer as long as it takes: whoever asks Redis first comes to nothing else.
const redis = new Redis(redisUrlAt(redisServer.port), { maxRetriesPerRequest: null });
redis.on('error', () => undefined);
const path = `${tempDir()}/app.db`;
const db = await openDatabase(`file:${path}`);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});

const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
const clock = new ServiceClock(() => NOW);
const { tokens, store } = tokenProcess({ db, redis, vault, clock, authUrl: server.url });

let id = '';
let count = 0;

beforeEach(async () => {
  id = `ins_${++count}`;
  server.requests.length = 0;
  const grant = { accessToken: 'at-0', refreshToken: 'rt-0', grantedAt: NOW, accessExpiresAt: NOW + HOUR_MS };
  await tokens.install({ id, companyId: `cmp_${count}`, name: 'Acme', installedAt: NOW }, grant);
});

async function storedRefreshToken() {
  const row = await store.find(id);
  return vault.open(row?.refresh_token ?? '', { instanceId: id, purpose: 'refresh_token' });
}

test.each([
  ['before its access token ends', () => tokens.rotate(id)],
  ['as its access token was rejected', () => accessTokenFrom(tokens, id, 'at-0')],
])(
  'a refresh %s is on the disk though Redis says nothing any more since it was asked for',
  async (_when, refresh) => {
    const held = server.holdAnswer();
    const refreshing = refresh();
    await held.asked;
    redisServer.freeze();
    held.answer(200, ANSWER);
    await waitFor(async () => (await storedRefreshToken()) === 'rt-1').finally(() => redisServer.unfreeze());
    await refreshing;
    expect(server.requests.length).toBe(1);
  },
);

test('a grant that could not be written is written as soon as it can be, though Redis is away by then', async () => {
  const held = server.holdAnswer();
  const refreshing = tokens.rotate(id);
  await held.asked;
  const other = new Sqlite(path);
  other.exec('begin immediate');
  held.answer(200, ANSWER);
  await expect(refreshing).rejects.toThrow(/locked/);
  await redisServer.kill();
  other.close();
  await waitFor(async () => (await storedRefreshToken()) === 'rt-1');
  await redisServer.start();
  expect(await accessTokenFrom(tokens, id)).toBe('at-1');
  expect(server.requests.length).toBe(1);
});
