import Sqlite from 'better-sqlite3';
import { afterAll, beforeEach, expect, test, vi } from 'vitest';
import { Vault } from '../../src/tokens/vault.ts';
import { findFreePort } from '../support/free-port.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { newKey, tokenKeysValue } from './encrypted-tokens.ts';

// Many processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const testApp = await startTestApp({ workers: false });
const { config, control, env, session } = testApp;
const RIGHT = config.tokenKeys[0] ?? newKey('none');
const WRONG = newKey(RIGHT.id);

const database = new Sqlite(config.databaseUrl.replace(/^file:/, ''));
afterAll(() => database.close());

const start = (entry: string, keys: (typeof RIGHT)[], more: Record<string, string> = {}) =>
  spawnEntry(entry, { ...env, TOKEN_KEYS: tokenKeysValue(keys), ...more });

async function startWorker(...keys: (typeof RIGHT)[]): Promise<EntryProcess> {
  const worker = start('src/worker.ts', keys, { LOG_LEVEL: 'info' });
  await worker.waitForOutput(/the workers run/);
  return worker;
}

let browser: ReturnType<typeof session>;
let ids: string[];

async function installCompany(): Promise<string> {
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 5, conversations: 5 });
  return install(browser, company);
}

beforeEach(async () => {
  browser = session();
  const worker = await startWorker(RIGHT);
  ids = [await installCompany(), await installCompany(), await installCompany()];
  for (const id of ids) await waitForStatus(browser, id, isSynced);
  await worker.stop();
});

const statuses = async () =>
  (await Promise.all(ids.map((id) => readStatus(browser, id)))).map(({ status }) => status);
const press = async (id: string, button: string) =>
  browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/${button}`));

async function syncAll(): Promise<void> {
  const before = new Map<string, unknown>();
  for (const id of ids) before.set(id, (await readStatus(browser, id)).resources.contacts?.finished_at);
  for (const id of ids) await press(id, 'sync');
  for (const id of ids) {
    await waitForStatus(
      browser,
      id,
      (now) => isSynced(now) && now.resources.contacts?.finished_at !== before.get(id),
    );
  }
}

test('another key under the right id starts nothing, says so and what to do, and ends no grant', async () => {
  for (const id of ids) await press(id, 'sync');
  const entries = ['src/worker.ts', 'src/web.ts', 'src/start.ts', 'src/reencrypt.ts'];
  const started = await Promise.all(
    entries.map(async (entry) => start(entry, [WRONG], { PORT: String(await findFreePort()) })),
  );
  for (const one of started) {
    expect(await one.exited).toEqual({ code: 1, signal: null });
    expect(one.output()).toContain(`another key under the id "${RIGHT.id}"`);
    expect(one.output()).toMatch(/Put the right key back/);
    expect(one.output()).not.toContain(WRONG.key.toString('base64'));
  }
  expect(await statuses()).toEqual(['active', 'active', 'active']);
  const worker = await startWorker(RIGHT);
  await syncAll();
  await worker.stop();
});

test('another key in a process that had begun with another database ends no grant either', async () => {
  const kept = database.prepare('select * from key_checks').all() as {
    key_id: string;
    check_value: string;
  }[];
  database.exec('delete from key_checks');
  // As it was before its tokens: whoever starts with it now is taken for right.
  const sealed = database.prepare('select * from tokens').all() as {
    instance_id: string;
    access_token: string;
    refresh_token: string;
  }[];
  const write = database.prepare(
    'update tokens set access_token = ?, refresh_token = ? where instance_id = ?',
  );
  for (const { instance_id } of sealed) write.run('v1.x.A', 'v1.x.A', instance_id);
  const worker = await startWorker(WRONG);
  database.exec('delete from key_checks');
  for (const row of sealed) write.run(row.access_token, row.refresh_token, row.instance_id);

  for (const id of ids) await press(id, 'sync');
  for (const id of ids) {
    const status = await waitForStatus(browser, id, ({ resources }) =>
      Object.values(resources).every(({ state }) => state === 'failed'),
    );
    expect(status.status).toBe('active');
    expect(status.resources.contacts?.error).toMatch(/not known to be the right one: whoever runs this app/);
  }
  await worker.stop();
  for (const { key_id, check_value } of kept) {
    database.prepare('insert into key_checks values (?, ?)').run(key_id, check_value);
  }
  const mended = await startWorker(RIGHT);
  await syncAll();
  await mended.stop();
});

test('grants that a wrong key has ended go on when the tokens open again; those whose tokens do not, stay as they are', async () => {
  const [, damaged = '', refused = ''] = ids;
  const notice =
    'The stored access token was changed, or belongs elsewhere. Authorize the app again to go on; everything copied so far is kept.';
  const end = database.prepare(
    "update instances set status = 'needs_reauthorization', notice = ? where id = ?",
  );
  for (const id of ids) end.run(id === refused ? 'The service does not accept it.' : notice, id);
  const kept = database
    .prepare('select refresh_token from tokens where instance_id = ?')
    .pluck()
    .get(damaged);
  const setRefresh = database.prepare('update tokens set refresh_token = ? where instance_id = ?');
  const moved = new Vault([RIGHT]).seal('x', { instanceId: 'elsewhere', purpose: 'refresh_token' });
  setRefresh.run(moved, damaged);

  const worker = await startWorker(RIGHT);
  expect(await statuses()).toEqual(['active', 'needs_reauthorization', 'needs_reauthorization']);
  expect(worker.output().match(/the tokens open again: the grant goes on/g)?.length).toBe(1);
  ids = ids.slice(0, 1);
  await syncAll();
  expect(await readStatus(browser, ids[0] ?? '')).toMatchObject({ status: 'active', notice: null });
  await worker.stop();

  setRefresh.run(kept, damaged);
  const restored = await startWorker(RIGHT);
  expect(await readStatus(browser, damaged)).toMatchObject({ status: 'active', notice: null });
  await restored.stop();
});

test('runs that failed for want of a key go on as soon as a worker has it', async () => {
  const next = newKey('next');
  const reencrypted = start('src/reencrypt.ts', [next, RIGHT]);
  expect((await reencrypted.exited).code, reencrypted.output()).toBe(0);
  const before = await startWorker(RIGHT);
  for (const id of ids) await press(id, 'sync');
  for (const id of ids) {
    const status = await waitForStatus(browser, id, ({ resources }) =>
      Object.values(resources).every(({ state }) => state === 'failed'),
    );
    expect(status.resources.contacts?.error).toMatch(
      /the key "next", which TOKEN_KEYS does not hold: whoever/,
    );
  }
  await before.stop();

  const after = await startWorker(next, RIGHT);
  for (const id of ids) {
    const status = await waitForStatus(browser, id, isSynced);
    expect(status).toMatchObject({ status: 'active', resources: { contacts: { error: null } } });
  }
  await after.stop();
});
