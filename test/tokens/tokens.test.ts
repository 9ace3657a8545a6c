import { randomBytes } from 'node:crypto';
import { setImmediate as turn } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { FileLocks } from '../../src/runtime/file-locks.ts';
import { openDatabase } from '../../src/store/database.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { RedisLock } from '../../src/tokens/lock.ts';
import { OAuthClient } from '../../src/tokens/oauth-client.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { Tokens } from '../../src/tokens/tokens.ts';
import type { TokensParts } from '../../src/tokens/tokens-types.ts';
import { Vault } from '../../src/tokens/vault.ts';
import { migrateFurther } from '../store/migrate-further.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from './access-token.ts';
import { startTokenServer, type TokenServer } from './token-server.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

// A token route of the test's own, not the sandbox: the test holds its answers back for as long as it likes.
const server = await startTokenServer();
const { url } = await startTestRedis();
const redis = new Redis(url);
const lockDir = tempDir();
const databaseUrl = `file:${tempDir()}/app.db`;
const db = await openDatabase(databaseUrl);
afterAll(async () => {
  redis.disconnect();
  await db.destroy();
});

const vault = new Vault([{ id: 'k1', key: randomBytes(32) }]);
const store = new TokenStore(db);
const instances = new InstanceStore(db);

let now: number;
let events: string[];
let id: string;
let tokens: Tokens;
let count = 0;

beforeEach(async () => {
  now = NOW;
  events = [];
  id = `ins_${++count}`;
  server.requests.length = 0;
  tokens = newProcess();
  await tokens.install(
    { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now },
    grant('at-0', 'rt-0'),
  );
});

/** The same store and Redis, as another process has them. */
function newProcess(parts: Partial<TokensParts> = {}): Tokens {
  const clock = new ServiceClock(() => now);
  return new Tokens({
    oauth: newOAuthClient(clock),
    store,
    instances,
    vault,
    lock: new RedisLock(redis),
    hostLocks: new FileLocks(lockDir),
    pauses: new RefreshPauses(redis),
    clock,
    onRefresh: ({ outcome }) => events.push(outcome),
    ...parts,
  });
}

/** One that sees nobody's locks: those of Redis were lost, those of files are on a file system that keeps none. */
async function newUnlocked(): Promise<Tokens> {
  await redis.flushall();
  return newProcess({ hostLocks: new FileLocks(tempDir()) });
}

function newOAuthClient(clock: ServiceClock, timeoutSeconds = 30): OAuthClient {
  return new OAuthClient({
    authUrl: server.url,
    clientId: 'app',
    clientSecret: 'secret',
    redirectUri: 'https://app.example/oauth/callback',
    clock,
    timeoutSeconds,
  });
}

function grant(accessToken: string, refreshToken: string) {
  return { accessToken, refreshToken, grantedAt: now, accessExpiresAt: now + HOUR_MS };
}

async function stored() {
  const row = await store.find(id);
  if (row === undefined) throw new Error('no tokens');
  return {
    ...row,
    access: vault.open(row.access_token, { instanceId: id, purpose: 'access_token' }),
    refresh: vault.open(row.refresh_token, { instanceId: id, purpose: 'refresh_token' }),
  };
}

const JSON_TYPE = { 'content-type': 'application/json' };
const ANSWERED = { access_token: 'at-late', refresh_token: 'rt-late', token_type: 'Bearer' };

test('a token that is good is used as it is, and nothing is asked', async () => {
  expect(await accessTokenFrom(tokens, id)).toBe('at-0');
  now += HOUR_MS - 2 * 60_000 - 1;
  expect(await accessTokenFrom(tokens, id)).toBe('at-0');
  expect(server.requests).toEqual([]);
});

test('a token that is held for several requests says when it is to be asked for anew', async () => {
  server.answerRefreshes();
  const held = await tokens.heldToken(id, undefined, 'contacts');
  expect(held.text).toBe('at-0');
  expect(held.isDue()).toBe(false);
  now += HOUR_MS - 2 * 60_000;
  expect(held.isDue()).toBe(true);
  expect((await tokens.heldToken(id, undefined, 'contacts')).text).toBe('at-1');
  expect((await tokens.heldToken(id, undefined, 'contacts')).isDue()).toBe(false);
});

test('one that is about to end is renewed first; the refresh token stays', async () => {
  server.answerRefreshes();
  now += HOUR_MS - 2 * 60_000;
  expect(await accessTokenFrom(tokens, id)).toBe('at-1');
  expect(await stored()).toMatchObject({
    access: 'at-1',
    refresh: 'rt-0',
    access_expires_at: now + HOUR_MS,
    refresh_issued_at: NOW,
    refreshes: 1,
    rotations: 0,
  });
  expect(events).toEqual(['refreshed']);
});

test('one that was rejected is renewed once; whoever comes later with it gets the new one', async () => {
  server.answerRefreshes();
  expect(await accessTokenFrom(tokens, id, 'at-0')).toBe('at-1');
  expect(await accessTokenFrom(tokens, id, 'at-0')).toBe('at-1');
  expect(server.requests.length).toBe(1);
});

test('an answer without a refresh token leaves the old one in force', async () => {
  server.answerRefreshes({ withoutRefreshToken: true });
  await tokens.rotate(id);
  expect(await stored()).toMatchObject({ access: 'at-1', refresh: 'rt-0', rotations: 0 });
});

test('a new refresh token starts a new period', async () => {
  server.answerRefreshes({ rotating: true });
  now += 180 * DAY_MS;
  await tokens.rotate(id);
  const row = await stored();
  expect(row).toMatchObject({ refresh: 'rt-1', refresh_issued_at: now, rotations: 1 });
  expect(row.refresh_due_at).toBeGreaterThan(now + 178 * DAY_MS);
  expect(events).toEqual(['rotated']);
});

test('a new refresh token is durable before anybody uses the new access token', async () => {
  server.answerRefreshes({ rotating: true });
  const elsewhere = await openDatabase(databaseUrl);
  const accessToken = await accessTokenFrom(tokens, id, 'at-0');
  const row = await new TokenStore(elsewhere).find(id);
  await elsewhere.destroy();
  expect(accessToken).toBe('at-1');
  expect(vault.open(row?.refresh_token ?? '', { instanceId: id, purpose: 'refresh_token' })).toBe('rt-1');
});

test('if the new grant cannot be written, nobody gets its access token', async () => {
  server.answerRefreshes({ rotating: true });
  const failing = new (class extends TokenStore {
    override async replace(): Promise<boolean> {
      throw new Error('disk full');
    }
  })(db);
  await expect(accessTokenFrom(newProcess({ store: failing }), id, 'at-0')).rejects.toThrow('disk full');
  expect((await stored()).access).toBe('at-0');
});

test('a new grant that could not be written is written by the next who wants a token; the service is not asked again', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = fillingStore();
  const process = newProcess({ store: filling });
  await expect(accessTokenFrom(process, id, 'at-0')).rejects.toThrow('disk full');
  now += 10 * 60_000;
  await expect(process.rotate(id)).rejects.toThrow('disk full');
  disk.isFull = false;
  expect(await accessTokenFrom(process, id, 'at-0')).toBe('at-1');
  expect(server.requests.length).toBe(1);
  // Its lives count from when it was granted, not from when it was written.
  expect(await stored()).toMatchObject({
    access: 'at-1',
    refresh: 'rt-1',
    refresh_issued_at: NOW,
    rotations: 1,
    refreshes: 1,
  });
  await process.rotate(id);
  expect(await accessTokenFrom(process, id)).toBe('at-2');
});

/** A store whose disk is full until it is told otherwise, and counts what it refuses until then. */
function fillingStore() {
  const disk = { isFull: true, refused: 0 };
  const filling = new (class extends TokenStore {
    override async replace(...args: Parameters<TokenStore['replace']>): Promise<boolean> {
      if (disk.isFull) {
        disk.refused++;
        throw new Error('disk full');
      }
      return super.replace(...args);
    }
  })(db);
  return { disk, filling };
}

test('a new grant that could not be written is written by its process as soon as it can be; no other asks the service meanwhile', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = fillingStore();
  await expect(newProcess({ store: filling }).rotate(id)).rejects.toThrow('disk full');
  const sibling = newProcess();
  await expect(sibling.rotate(id)).rejects.toMatchObject({ remedy: 'wait', message: /cannot write it yet/ });
  // It is tried as often as it takes, and each time the others are told anew to wait.
  await redis.del(`tokens:{${id}}:unwritten:pause`);
  const { refused } = disk;
  await waitFor(() => disk.refused >= refused + 2);
  await expect(sibling.rotate(id)).rejects.toMatchObject({ message: /cannot write it yet/ });
  disk.isFull = false;
  await waitFor(async () => (await stored()).access === 'at-1');
  expect(await stored()).toMatchObject({ refresh: 'rt-1', rotations: 1 });
  expect(server.requests.length).toBe(1);
  await waitFor(async () => (await sibling.rotate(id).catch(() => 'waits')) === undefined);
  expect(server.requests.length).toBe(2);
});

test('a new grant that could not be written is written at the end of its process, if it can be by then', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = fillingStore();
  const process = newProcess({ store: filling });
  await expect(process.rotate(id)).rejects.toThrow('disk full');
  disk.isFull = false;
  await process.close();
  expect(await stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
});

test('a new grant that cannot be written yet at the end of its process is tried on, and told when it is lost', async () => {
  server.answerRefreshes({ rotating: true });
  const { disk, filling } = fillingStore();
  const lost: unknown[] = [];
  const process = newProcess({ store: filling, onLost: (told) => lost.push(told) });
  await expect(process.rotate(id)).rejects.toThrow('disk full');
  const { refused } = disk;
  const closing = process.close();
  await waitFor(() => disk.refused >= refused + 3);
  disk.isFull = false;
  await closing;
  expect(await stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
  expect(lost).toEqual([]);

  disk.isFull = true;
  await expect(process.rotate(id)).rejects.toThrow('disk full');
  await expect(process.close()).rejects.toThrow(/could not be written/);
  expect(lost).toEqual([{ instanceId: id, error: expect.objectContaining({ message: 'disk full' }) }]);
  expect(await stored()).toMatchObject({ access: 'at-1', refresh: 'rt-1' });
});

test('a new grant that could not be written before an install is not told as lost at the end', async () => {
  server.answerRefreshes({ rotating: true });
  const lost: unknown[] = [];
  const process = newProcess({ store: fillingStore().filling, onLost: (told) => lost.push(told) });
  await expect(process.rotate(id)).rejects.toThrow('disk full');
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  await newProcess().install(company, grant('at-installed', 'rt-installed'));
  await process.close();
  expect(lost).toEqual([]);
  expect(await stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
});

test('while the database cannot be written, no refresh token is spent: its successor could not be kept', async () => {
  server.answerRefreshes({ rotating: true });
  const other = new Sqlite(databaseUrl.slice('file:'.length));
  other.exec('begin immediate');
  await expect(tokens.rotate(id)).rejects.toThrow(/locked/);
  other.close();
  expect(server.requests).toEqual([]);
  await tokens.rotate(id);
  expect(await stored()).toMatchObject({ refresh: 'rt-1', rotations: 1 });
});

test('a grant that could not be written does not come back over an install', async () => {
  server.answerRefreshes({ rotating: true });
  const failing = new (class extends TokenStore {
    override async replace(): Promise<boolean> {
      throw new Error('disk full');
    }
  })(db);
  const process = newProcess({ store: failing });
  await expect(accessTokenFrom(process, id, 'at-0')).rejects.toThrow('disk full');
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  await newProcess().install(company, grant('at-installed', 'rt-installed'));
  expect(await accessTokenFrom(process, id, 'at-0')).toBe('at-installed');
  await expect(accessTokenFrom(process, id, 'at-installed')).rejects.toThrow('disk full');
  const sent = server.requests.map(({ body }) => new URLSearchParams(body).get('refresh_token'));
  expect(sent).toEqual(['rt-0', 'rt-installed']);
});

test('a refresh that is under way while a newer version migrates the database is written; no further one is begun', async () => {
  const path = `${tempDir()}/app.db`;
  const own = await openDatabase(`file:${path}`);
  const ownStore = new TokenStore(own);
  const old = newProcess({ store: ownStore, instances: new InstanceStore(own) });
  await old.install({ id, companyId: 'cmp', name: 'Acme', installedAt: now }, grant('at-0', 'rt-0'));
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(old, id, 'at-0');
  await held.asked;
  const newer = new Sqlite(path);
  migrateFurther(newer);
  newer.close();
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-late');
  const row = await ownStore.find(id);
  expect(vault.open(row?.refresh_token ?? '', { instanceId: id, purpose: 'refresh_token' })).toBe('rt-late');

  const isNoticed = () =>
    ownStore.checkWritable().then(
      () => false,
      () => true,
    );
  await waitFor(isNoticed);
  await expect(old.rotate(id)).rejects.toThrow(NewerSchemaError);
  expect(server.requests.length).toBe(1);
  await own.destroy();
});

test('an install that comes while a refresh is under way has the last word', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  const installing = newProcess().install(
    { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now },
    grant('at-installed', 'rt-installed'),
  );
  held.answer(200, ANSWERED);
  await Promise.all([refreshing, installing]);
  expect(await stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
});

const MINUTE_MS = 60_000;

test.each<[string, string, number, number]>([
  ['stays over one that is stored after it and came before it', 'at-b', -2_000, -3_000],
  ['that came at the same moment as another gives way to it', 'at-a', -2_000, -2_000],
  ['gives way to a later one', 'at-a', -3_000, -2_000],
  ['from a moment that is yet to come, by a clock that was wrong, keeps no other out', 'at-a', MINUTE_MS, 0],
  ['that seems to be far newer, by a clock that was wrong, keeps no other out', 'at-a', 0, -11 * MINUTE_MS],
])('of two grants of a company, one %s', async (_what, kept, cameB, cameA) => {
  const company = { id, companyId: `cmp_${count}`, name: 'Acme' };
  const localNow = Date.now();
  await newProcess().install({ ...company, installedAt: localNow + cameB }, grant('at-b', 'rt-b'));
  const before = await stored();
  await tokens.install({ ...company, installedAt: localNow + cameA }, grant('at-a', 'rt-a'));
  const after = await stored();
  expect(after.access).toBe(kept);
  expect(after.refresh).toBe(kept.replace('at', 'rt'));
  if (kept === 'at-b') expect(after).toEqual(before);
  expect((await instances.find(id))?.status).toBe('active');
});

test('a later grant stays over an earlier one also where its instance was paused meanwhile', async () => {
  const company = { id, companyId: `cmp_${count}`, name: 'Acme' };
  const localNow = Date.now();
  await newProcess().install({ ...company, installedAt: localNow - 1_000 }, grant('at-b', 'rt-b'));
  await instances.setStatus(id, 'paused', { from: ['active'] });
  await tokens.install({ ...company, installedAt: localNow - 2_000 }, grant('at-a', 'rt-a'));
  expect(await stored()).toMatchObject({ access: 'at-b', refresh: 'rt-b' });
  expect((await instances.find(id))?.status).toBe('paused');
});

test('an earlier grant is taken all the same where the later one is over', async () => {
  const company = { id, companyId: `cmp_${count}`, name: 'Acme' };
  const localNow = Date.now();
  await newProcess().install({ ...company, installedAt: localNow - 1_000 }, grant('at-b', 'rt-b'));
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(accessTokenFrom(tokens, id, 'at-b')).rejects.toMatchObject({ remedy: 'reauthorize' });
  await tokens.install({ ...company, installedAt: localNow - 2_000 }, grant('at-a', 'rt-a'));
  expect(await stored()).toMatchObject({ access: 'at-a', refresh: 'rt-a' });
  expect(await instances.find(id)).toMatchObject({ status: 'active', notice: null });
});

test('a late holder, whose lock ran out, does not overwrite a newer grant, and uses that', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  await redis.flushall();
  await newProcess().install(
    { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now },
    grant('at-installed', 'rt-installed'),
  );
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-installed');
  expect(await stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
  expect(events).toEqual([]);
});

test('nor does it overwrite the grant of an install that came after a disconnect', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  await redis.flushall();
  await store.disconnect(id);
  await newProcess().install(
    { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now },
    grant('at-installed', 'rt-installed'),
  );
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-installed');
  expect(await stored()).toMatchObject({ access: 'at-installed', refresh: 'rt-installed' });
});

test('invalid_grant after somebody else has renewed the grant is no harm', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  const sibling = await newUnlocked();
  server.answerRefreshes({ rotating: true });
  expect(await accessTokenFrom(sibling, id, 'at-0')).toBe('at-1');
  held.answer(400, { error: 'invalid_grant' });
  expect(await refreshing).toBe('at-1');
  expect((await instances.find(id))?.status).toBe('active');
});

test('a late holder that brings a good grant after a sibling’s was refused: the instance is awake again', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  const sibling = await newUnlocked();
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(accessTokenFrom(sibling, id, 'at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect((await instances.find(id))?.status).toBe('needs_reauthorization');
  held.answer(200, ANSWERED);
  expect(await refreshing).toBe('at-late');
  expect(await instances.find(id)).toMatchObject({ status: 'active', notice: null });
  expect(await stored()).toMatchObject({ refresh: 'rt-late' });
});

test('a grant that was refused is not asked for again, by nobody, and it is told once', async () => {
  server.answerJson(400, { error: 'invalid_grant' });
  const siblings = [tokens, newProcess(), newProcess()];
  const asking = siblings.flatMap((one) => [accessTokenFrom(one, id, 'at-0'), one.rotate(id)]);
  const results = await Promise.allSettled(asking);
  expect(results.map(({ status }) => status)).toEqual(Array(6).fill('rejected'));
  await expect(accessTokenFrom(tokens, id, 'at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(server.requests.length).toBe(1);
  expect(events).toEqual(['rejected']);
});

test('of two that are refused, as the lock of one ran out, one tells it', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  const sibling = await newUnlocked();
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(accessTokenFrom(sibling, id, 'at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(events).toEqual(['rejected']);
  held.answer(400, { error: 'invalid_grant' });
  await expect(refreshing).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(events).toEqual(['rejected']);
});

test('where the service does not say whose a grant is, its end promises no repair by a new authorization', async () => {
  const unknown = { id: `${id}_unknown`, companyId: null, name: 'Installed today', installedAt: now };
  await tokens.install(unknown, grant('at-u', 'rt-u'));
  server.answerJson(400, { error: 'invalid_grant' });
  for (const one of [id, unknown.id]) await expect(tokens.rotate(one)).rejects.toThrow();
  expect((await instances.find(id))?.notice).toContain('Authorize the app again to go on');
  const notice = (await instances.find(unknown.id))?.notice;
  expect(notice).toContain('a new one begins a copy of its own');
  expect(notice).not.toContain('to go on');
});

test('a refusal of a grant that an install has replaced meanwhile ends nothing', async () => {
  const racing = new (class extends TokenStore {
    override async reject(...args: Parameters<TokenStore['reject']>): Promise<boolean> {
      // Its lock was lost, and the install comes between its second look and its verdict.
      const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
      await redis.flushall();
      await newProcess().install(company, grant('at-installed', 'rt-installed'));
      return super.reject(...args);
    }
  })(db);
  server.answerJson(400, { error: 'invalid_grant' });
  const refusing = accessTokenFrom(newProcess({ store: racing }), id, 'at-0');
  await expect(refusing).rejects.toMatchObject({ remedy: 'reauthorize' });
  expect(await instances.find(id)).toMatchObject({ status: 'active', notice: null });
  expect(await accessTokenFrom(tokens, id)).toBe('at-installed');
});

test('invalid_grant otherwise ends the grant: a new authorization is needed, the reason is noted', async () => {
  server.answerJson(400, { error: 'invalid_grant' });
  await expect(accessTokenFrom(tokens, id, 'at-0')).rejects.toMatchObject({ remedy: 'reauthorize' });
  const instance = await instances.find(id);
  expect(instance?.status).toBe('needs_reauthorization');
  expect(instance?.notice).toMatch(/authorize/i);
  expect(events).toEqual(['rejected']);

  await tokens.install(
    { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now },
    grant('at-9', 'rt-9'),
  );
  expect(await instances.find(id)).toMatchObject({ status: 'active', notice: null });
  expect(await accessTokenFrom(tokens, id)).toBe('at-9');
});

test('invalid_grant after a disconnect does not wake the instance', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0').catch((error: unknown) => error);
  await held.asked;
  await store.disconnect(id);
  held.answer(400, { error: 'invalid_grant' });
  expect(await refreshing).toMatchObject({ remedy: 'reauthorize' });
  expect((await instances.find(id))?.status).toBe('disconnected');
});

test('a refresh that ends after a disconnect stores nothing, and only a new authorization helps', async () => {
  const held = server.holdAnswer();
  const refreshing = accessTokenFrom(tokens, id, 'at-0').catch((error: unknown) => error);
  await held.asked;
  await store.disconnect(id);
  held.answer(200, ANSWERED);
  expect(await refreshing).toMatchObject({ remedy: 'reauthorize' });
  expect(await store.find(id)).toBeUndefined();
  await expect(accessTokenFrom(tokens, id)).rejects.toMatchObject({ remedy: 'reauthorize' });
});

test.each<[string, TokenServer['answer'], object]>([
  ['500', (response) => response.writeHead(500).end('{}'), { remedy: 'wait', status: 500 }],
  [
    '429',
    (response) => response.writeHead(429, { 'retry-after': '0.3' }).end('{}'),
    { remedy: 'wait', status: 429, retryAfterMs: 300 },
  ],
  ['no answer', () => undefined, { remedy: 'wait', status: undefined }],
  ['an answer that does not end', (response) => response.writeHead(200).write('{'), { remedy: 'wait' }],
  ['a broken connection', (response) => response.destroy(), { remedy: 'wait', status: undefined }],
  [
    'wrong credentials',
    (response) => response.writeHead(401, JSON_TYPE).end('{"error":"invalid_client"}'),
    { remedy: 'give_up' },
  ],
])(
  'trouble at the token route (%s) keeps the grant, and a while later it is asked again',
  async (_what, answer, expected) => {
    server.answer = answer;
    tokens = newProcess({ oauth: newOAuthClient(new ServiceClock(() => now), 0.2) });
    const before = await stored();
    await expect(accessTokenFrom(tokens, id, 'at-0')).rejects.toMatchObject(expected);
    expect(await stored()).toEqual(before);
    expect((await instances.find(id))?.status).toBe('active');
    expect(events).toEqual(['failed']);
    server.answerRefreshes();
    expect(await waitFor(() => accessTokenFrom(tokens, id, 'at-0'))).toBe('at-1');
  },
);

test('a token that is rejected again and again is not renewed again and again', async () => {
  server.answerRefreshes();
  expect(await accessTokenFrom(tokens, id, 'at-0')).toBe('at-1');
  for (const one of [tokens, newProcess()]) {
    await expect(accessTokenFrom(one, id, 'at-1')).rejects.toMatchObject({
      remedy: 'wait',
      message: expect.stringMatching(/rejects even an access token that it has just renewed \(401\)/),
    });
  }
  expect(server.requests.length).toBe(1);
  // Its own end is another matter, and so is a new authorization.
  now += HOUR_MS;
  expect(await accessTokenFrom(tokens, id, 'at-0')).toBe('at-2');
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  await tokens.install(company, grant('at-installed', 'rt-installed'));
  expect(await accessTokenFrom(tokens, id, 'at-installed')).toBe('at-3');
});

test('tokens that end sooner than told, and are of use until then, are renewed as often as that takes', async () => {
  const pauseKey = () => `tokens:{${id}}:rejection:pause`;
  /** The pauses after tokens in a row that are rejected after so many milliseconds. */
  const pausesOf = async (usedForMs: number | undefined) => {
    const pauses: number[] = [];
    for (let tries = 0; tries < 10; tries++) {
      const token = await tokens.heldToken(id, undefined, 'contacts');
      if (usedForMs !== undefined) {
        token.accepted();
        now += usedForMs;
        token.accepted();
      }
      await tokens.heldToken(id, token.text, 'contacts');
      pauses.push(await redis.pttl(pauseKey()));
      await redis.del(pauseKey());
    }
    return pauses;
  };
  const minute = 60_000;
  server.answerRefreshes();
  for (const usedForMs of [30 * minute, 2 * minute]) {
    const pauses = await pausesOf(usedForMs);
    expect(Math.max(...pauses)).toBeLessThanOrEqual(usedForMs);
    // They grow all the same: half of each is certain.
    expect(pauses.at(-1)).toBeGreaterThan(usedForMs / 2 - minute / 2);
  }
  expect(Math.max(...(await pausesOf(20)))).toBeLessThanOrEqual(minute / 2);
  expect((await pausesOf(undefined)).at(-1)).toBeGreaterThan(29 * minute);
});

test.each(['conversations', '/tags'])(
  'tokens that one route (%s) rejects at once, while another takes them, are renewed ever more seldom',
  async (use) => {
    const pauseKey = `tokens:{${id}}:rejection:pause`;
    server.answerRefreshes();
    const pauses: number[] = [];
    for (let tries = 0; tries < 10; tries++) {
      const elsewhere = await tokens.heldToken(id, undefined, 'contacts');
      elsewhere.accepted();
      now += 60_000;
      elsewhere.accepted();
      await tokens.heldToken(id, elsewhere.text, use);
      pauses.push(await redis.pttl(pauseKey));
      await redis.del(pauseKey);
    }
    expect(pauses.at(-1)).toBeGreaterThan(29 * 60_000);
  },
);

test('a token that was over by the service’s time was rejected with good reason: its successor may be renewed, too', async () => {
  const clock = new ServiceClock(() => now);
  const process = newProcess({ clock, oauth: newOAuthClient(clock) });
  server.answerRefreshes();
  const { answer } = server;
  server.answer = (response) => {
    response.setHeader('date', new Date(now + HOUR_MS).toUTCString());
    if (server.requests.at(-1)?.method === 'HEAD') response.writeHead(404).end();
    else answer(response);
  };
  // By the local clock it has an hour to live.
  expect(await accessTokenFrom(process, id, 'at-0')).toBe('at-1');
  expect(await accessTokenFrom(process, id, 'at-1')).toBe('at-2');
  await expect(accessTokenFrom(process, id, 'at-2')).rejects.toMatchObject({ remedy: 'wait' });
});

test('callers in one process share a refresh, processes take turns and look first', async () => {
  const held = server.holdAnswer();
  const sibling = newProcess();
  const asking = [tokens, tokens, sibling, sibling].map((one) => accessTokenFrom(one, id, 'at-0'));
  await held.asked;
  await turn();
  held.answer(200, ANSWERED);
  expect(await Promise.all(asking)).toEqual(Array(4).fill('at-late'));
  expect(server.requests.length).toBe(1);
});

test('of two processes whose Redis is emptied in the middle of a refresh, one asks the service, and both have its token', async () => {
  const held = server.holdAnswer();
  const first = accessTokenFrom(tokens, id, 'at-0');
  await held.asked;
  server.answerRefreshes();
  await redis.flushall();
  const sibling = newProcess();
  const second = accessTokenFrom(sibling, id, 'at-0');
  // By the time that one has come through that was begun later, it would have asked, too.
  const other = { id: `${id}_other`, companyId: `cmp_${count}_other`, name: 'Other', installedAt: now };
  await sibling.install(other, grant('at-other', 'rt-other'));
  await sibling.rotate(other.id);
  held.answer(200, ANSWERED);
  expect(await Promise.all([first, second])).toEqual(['at-late', 'at-late']);
  const sent = server.requests.map(({ body }) => new URLSearchParams(body).get('refresh_token'));
  expect(sent).toEqual(['rt-0', 'rt-other']);
  expect(await stored()).toMatchObject({ refresh: 'rt-late', refreshes: 1 });
});

test('a process that ends waits for no other one’s refresh, also where Redis has forgotten that', async () => {
  const held = server.holdAnswer();
  const refreshing = tokens.rotate(id);
  await held.asked;
  await redis.flushall();
  const sibling = newProcess();
  const isTold = expect(accessTokenFrom(sibling, id, 'at-0')).rejects.toMatchObject({
    remedy: 'wait',
    message: expect.stringContaining('being stopped'),
  });
  await waitFor(() => redis.exists(`tokens:{${id}}:lock`));
  sibling.end();
  // Before the other refresh has come to its end.
  await isTold;
  held.answer(200, ANSWERED);
  await refreshing;
  expect(server.requests.length).toBe(1);
});

test('nothing is stored in clear', async () => {
  const row = JSON.stringify(await store.find(id));
  expect(row).not.toMatch(/at-0|rt-0/);
});

async function dueIds(): Promise<string[]> {
  return (await tokens.dueForRotation()).map(({ instance_id }) => instance_id);
}

test('what is due for rotation: the instance’s own time has come, and the last try lies an hour back', async () => {
  server.answerRefreshes();
  const { refresh_due_at: dueAt } = await stored();
  now = dueAt - 1;
  expect(await dueIds()).not.toContain(id);
  now = dueAt;
  expect(await dueIds()).toContain(id);

  await tokens.rotate(id);
  expect(await dueIds()).not.toContain(id);
  now += HOUR_MS;
  expect(await dueIds()).toContain(id);

  await instances.setStatus(id, 'paused', { from: ['active'] });
  expect(await dueIds()).toContain(id);
  await instances.setStatus(id, 'needs_reauthorization', { from: ['paused'] });
  expect(await dueIds()).not.toContain(id);
});

test('what is due, and has been renewed for another reason before the sweep comes to it, is not renewed again', async () => {
  server.answerRefreshes({ rotating: true });
  now = (await stored()).refresh_due_at;
  const [due] = (await tokens.dueForRotation()).filter(({ instance_id }) => instance_id === id);
  await accessTokenFrom(newProcess(), id);
  expect(server.requests.length).toBe(1);
  await tokens.rotate(id, due?.version);
  expect(server.requests.length).toBe(1);
});

test('a grant that was noted at a moment that cannot be is due: nobody knows when it ends', async () => {
  server.answerRefreshes();
  const future = now + 400 * DAY_MS;
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  const noted = { grantedAt: future, accessExpiresAt: future + HOUR_MS };
  await tokens.install(company, { accessToken: 'at-9', refreshToken: 'rt-9', ...noted });
  expect(await dueIds()).toContain(id);
  await tokens.rotate(id);
  expect(await stored()).toMatchObject({ refresh_issued_at: now, refresh_due_at: now, refreshed_at: now });
  expect(await dueIds()).not.toContain(id);
  // From now on it is tried again and again, until the refresh token has changed.
  now += HOUR_MS;
  expect(await dueIds()).toContain(id);
  await tokens.rotate(id);
  now += HOUR_MS;
  expect(await dueIds()).toContain(id);
  server.answerRefreshes({ rotating: true });
  await tokens.rotate(id);
  now += 170 * DAY_MS;
  expect(await dueIds()).not.toContain(id);
  now += 10 * DAY_MS;
  expect(await dueIds()).toContain(id);
});

/** Lets the sweep come round every half hour until a moment. @returns when it has asked for tokens */
async function sweepUntil(end: number): Promise<number[]> {
  const asked: number[] = [];
  for (; now < end; now += HOUR_MS / 2) {
    if (!(await dueIds()).includes(id)) continue;
    await tokens.rotate(id);
    asked.push(now);
  }
  return asked;
}

const longestGap = (moments: number[]) =>
  Math.max(...moments.slice(1).map((moment, index) => moment - (moments[index] ?? 0)));

test('a refresh token of which nobody knows when it ends is tried at distances that grow up to 8 hours', async () => {
  server.answerRefreshes();
  const future = now + 2 * HOUR_MS;
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  const noted = { grantedAt: future, accessExpiresAt: future + HOUR_MS };
  await tokens.install(company, { accessToken: 'at-9', refreshToken: 'rt-9', ...noted });
  const asked = await sweepUntil(now + 3 * DAY_MS);
  expect(asked.slice(0, 6).map((moment) => (moment - NOW) / HOUR_MS)).toEqual([0, 1, 2, 4, 8, 16]);
  expect(longestGap(asked)).toBe(8 * HOUR_MS);
  expect(asked.length).toBeLessThanOrEqual(14);
});

test('one whose time has come is tried every hour for a week, as long as any reading of six months; then every 8 hours', async () => {
  server.answerRefreshes();
  const { refresh_due_at } = await stored();
  now = refresh_due_at;
  const hourly = await sweepUntil(refresh_due_at + 7 * DAY_MS);
  expect(longestGap(hourly)).toBe(HOUR_MS);
  const later = await sweepUntil(refresh_due_at + 10 * DAY_MS);
  expect(longestGap(later)).toBe(8 * HOUR_MS);
  expect(later.length).toBeLessThanOrEqual(14);
});

test('an access token that was noted at a moment that cannot be is renewed before it is used, once', async () => {
  server.answerRefreshes();
  const future = now + 20 * HOUR_MS;
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  const noted = { grantedAt: future, accessExpiresAt: future + HOUR_MS };
  await tokens.install(company, { accessToken: 'at-9', refreshToken: 'rt-9', ...noted });
  const held = await tokens.heldToken(id, undefined, 'contacts');
  expect(held.text).toBe('at-1');
  now += HOUR_MS / 2;
  expect(await accessTokenFrom(tokens, id)).toBe('at-1');
  expect(server.requests.length).toBe(1);
});

test('a grant counts from when it came, not from when it is stored', async () => {
  const granted = grant('at-9', 'rt-9');
  now += 5 * DAY_MS;
  const company = { id, companyId: `cmp_${count}`, name: 'Acme', installedAt: now };
  await tokens.install(company, granted);
  expect(await stored()).toMatchObject({ refresh_issued_at: NOW, refreshed_at: NOW });
});

test('clocks of the token route that do not agree cost a few refreshes, not one a request', async () => {
  const clock = new ServiceClock(() => now);
  const told = (moment: number) => new Date(moment).toUTCString();
  const process = newProcess({ clock, oauth: newOAuthClient(clock) });
  server.answerRefreshes();
  const { answer } = server;
  let refreshes = 0;
  server.answer = (response) => {
    response.setHeader('date', told(now));
    if (server.requests.at(-1)?.method === 'HEAD') return response.writeHead(404).end();
    refreshes++;
    answer(response);
  };
  // Another machine at the same address has another time, and answers twice in a row.
  const ask = (rejected?: string) => {
    for (let time = 0; time < 2; time++) clock.observe(told(now + 2 * HOUR_MS));
    return process.heldToken(id, rejected, 'contacts');
  };
  for (let request = 0; request < 60; request++) await ask();
  expect(refreshes).toBe(4);
  expect((await ask()).isDue()).toBe(false);

  // One that the service rejects is renewed all the same, and the half of an hour is over sometime.
  expect((await ask('at-4')).text).toBe('at-5');
  now += HOUR_MS / 2;
  for (let request = 0; request < 60; request++) await ask();
  expect(refreshes).toBe(7);
});

test('an installed instance keeps its counts over a new authorization', async () => {
  server.answerRefreshes({ rotating: true });
  const { version } = await stored();
  await tokens.rotate(id);
  await tokens.install(
    { id, companyId: `cmp_${count}`, name: 'Acme II', installedAt: now },
    grant('at-9', 'rt-9'),
  );
  expect(await stored()).toMatchObject({
    access: 'at-9',
    refresh: 'rt-9',
    rotations: 1,
    refreshes: 1,
    version: version + 2,
  });
  expect(await instances.find(id)).toMatchObject({ name: 'Acme II' });
});
