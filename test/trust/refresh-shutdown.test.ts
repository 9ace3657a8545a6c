import { randomBytes } from 'node:crypto';
import Sqlite from 'better-sqlite3';
import { afterAll, expect, test, vi } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { newStamps } from '../../src/tokens/rotation-stamps.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTokenServer } from '../tokens/token-server.ts';

// A worker that starts, waits for a locked database and takes its time to end: that is half a minute on a busy machine.
vi.setConfig({ testTimeout: 60_000 });

const DAY_MS = 24 * 60 * 60_000;
const HOUR_MS = 60 * 60_000;
/** How long after a signal the database is still locked: longer than a single try takes, in milliseconds. */
const LOCKED_MS = 2_500;
const ANSWER = { access_token: 'at-1', refresh_token: 'rt-1', token_type: 'Bearer' };

const server = await startTokenServer();
const key = randomBytes(32);
const vault = new Vault([{ id: 'k1', key }]);

/** A database whose only refresh token is about to end, and a worker that has just asked for another one. */
async function startRefreshing() {
  const path = `${tempDir()}/app.db`;
  const db = await openDatabase(`file:${path}`);
  afterAll(() => db.destroy());
  const store = new TokenStore(db);
  const instanceId = 'ins_1';
  const issuedAt = Date.now() - 181 * DAY_MS;
  await store.install(
    { id: instanceId, company_id: 'cmp_1', name: 'Acme', installed_at: issuedAt },
    {
      access_token: vault.seal('at-0', { instanceId, purpose: 'access_token' }),
      refresh_token: vault.seal('rt-0', { instanceId, purpose: 'refresh_token' }),
      access_expires_at: issuedAt + HOUR_MS,
      ...newStamps(instanceId, issuedAt),
      refreshed_at: issuedAt,
    },
  );
  // Nothing but its tokens is looked after.
  await db.updateTable('instances').set({ status: 'paused' }).execute();
  const asked = Promise.withResolvers<void>();
  const answered = Promise.withResolvers<void>();
  server.answer = async (response) => {
    if (server.requests.at(-1)?.method === 'POST') {
      asked.resolve();
      await answered.promise;
    }
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(ANSWER));
  };
  // Of its own, so that the first sweep is at once.
  const redisServer = await startRedisServer();
  const worker = spawnEntry('src/worker.ts', {
    SERVICE_API_URL: server.url,
    SERVICE_AUTH_URL: server.url,
    CLIENT_ID: 'app',
    CLIENT_SECRET: 'secret',
    PUBLIC_URL: 'http://127.0.0.1:1',
    DATABASE_URL: `file:${path}`,
    REDIS_URL: redisUrlAt(redisServer.port),
    SESSION_SECRET: randomBytes(32).toString('base64url'),
    TOKEN_KEYS: `k1:${key.toString('base64')}`,
  });
  await asked.promise;
  const stored = async () => {
    const row = await store.find(instanceId);
    return vault.open(row?.refresh_token ?? '', { instanceId, purpose: 'refresh_token' });
  };
  return { path, worker, answer: () => answered.resolve(), stored };
}

test('a worker that could not write what a refresh has brought writes it when it ends', async () => {
  const { path, worker, answer, stored } = await startRefreshing();
  const other = new Sqlite(path);
  other.exec('begin immediate');
  answer();
  await worker.waitForOutput(/tokens could not be renewed/);
  other.close();
  expect(await worker.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(await stored()).toBe('rt-1');
});

test('a worker whose database is locked when it ends tries on for seconds to write what a refresh has brought', async () => {
  const { path, worker, answer, stored } = await startRefreshing();
  const other = new Sqlite(path);
  other.exec('begin immediate');
  answer();
  await worker.waitForOutput(/tokens could not be renewed/);
  const end = worker.stop('SIGTERM');
  await worker.waitForOutput(/shutting down/);
  setTimeout(() => other.close(), LOCKED_MS);
  expect(await end).toEqual({ code: 0, signal: null });
  expect(await stored()).toBe('rt-1');
});

test('a worker whose database stays locked when it ends says whose new grant is lost, and ends with code 1', async () => {
  const { path, worker, answer, stored } = await startRefreshing();
  const other = new Sqlite(path);
  other.exec('begin immediate');
  answer();
  await worker.waitForOutput(/tokens could not be renewed/);
  expect(await worker.stop('SIGTERM')).toEqual({ code: 1, signal: null });
  other.close();
  expect(worker.output()).toMatch(
    /"level":"error".*"instanceId":"ins_1".*Another process has kept the database locked.*"msg":"a new grant is lost: it could not be written before the end of the process"/,
  );
  expect(worker.output()).not.toContain('the shutdown takes too long');
  expect(await stored()).toBe('rt-0');
});

test('a worker that ends while the token route takes its time keeps the answer that comes', async () => {
  const { worker, answer, stored } = await startRefreshing();
  const end = worker.stop('SIGTERM');
  await worker.waitForOutput(/shutting down/);
  answer();
  expect(await end).toEqual({ code: 0, signal: null });
  expect(await stored()).toBe('rt-1');
});

test('a worker that ends while the token route does not answer ends in order and in time, and says so', async () => {
  const { worker, stored } = await startRefreshing();
  expect(await worker.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(worker.output()).toMatch(
    /"instanceId":"ins_1","msg":"a refresh was cut off by the end of the process"/,
  );
  expect(await stored()).toBe('rt-0');
});
