import { closeSync, openSync, readFileSync, renameSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, describe, expect, test } from 'vitest';
import { createCheckedSandbox } from '../sandbox/checked-sandbox.ts';
import { runDocumented } from '../store/operations-page.ts';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession, type HttpPage } from '../support/http-session.ts';
import { consent, downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { SandboxControl } from '../support/sandbox-control.ts';
import { makeSmallDisk } from '../support/small-disk.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const RECORDS = { contacts: 2_500, conversations: 2_500 };

/** From the moment at which the trouble is over, in milliseconds. */
const BACK_WITHIN_MS = 60_000;

const DASHBOARD_SAYS = 'The app cannot write to its own database';
const LOG_SAYS = /the database cannot be written, trying on/;
const BACK = /the database can be written again/;

const closers: (() => Promise<void>)[] = [];
afterAll(async () => {
  for (const close of closers) await close();
});

/** The whole app in a process of its own, its database in this directory, in the middle of a company's first sync. */
async function begin(dir: string, through: readonly string[] = [], intervalMinutes = '0.1') {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  const redirectUris = [`${url}/oauth/callback`];
  const sandbox = await createCheckedSandbox({ windowMs: 6_000, latencyMs: 60, redirectUris });
  closers.push(() => sandbox.close());
  const database = join(dir, 'app.db');
  const env = {
    SERVICE_API_URL: sandbox.apiUrl,
    SERVICE_AUTH_URL: sandbox.authUrl,
    CLIENT_ID: sandbox.application.client_id,
    CLIENT_SECRET: sandbox.application.client_secret,
    PUBLIC_URL: url,
    PORT: String(port),
    DATABASE_URL: `file:${database}`,
    REDIS_URL: (await startTestRedis()).url,
    SYNC_INTERVAL_MINUTES: intervalMinutes,
  };
  const cwd = tempDir();
  const spawnApp = () => spawnEntry('src/start.ts', env, { through, cwd });
  const app = spawnApp();
  await app.waitForOutput(/The partner app runs/, 60_000);
  const control = new SandboxControl(sandbox.origin);
  const addCompany = (name: string) => control.addCompany({ name, plan: 'enterprise', ...RECORDS });
  const company = await addCompany('In trouble');
  const browser = createHttpSession(url);
  const id = await install(browser, company);
  await waitForStatus(browser, id, ({ resources }) => (resources.contacts?.pages ?? 0) >= 5);
  return { app, spawnApp, url, database, browser, id, control, addCompany };
}

type Begun = Awaited<ReturnType<typeof begin>>;

async function readiness({ url }: Pick<Begun, 'url'>) {
  const answer = await createHttpSession(url).get('/readyz');
  const { checks } = answer.json() as { checks: Record<string, string> };
  return { code: answer.status, database: checks.database ?? '' };
}

/** Machines are told by the status, whoever is on call by the log, administrators by the dashboard. */
async function expectTold(begun: Begun, advice: RegExp) {
  const { app, browser, id, url } = begun;
  const ready = await waitFor(async () => {
    const now = await readiness(begun);
    return now.code === 503 && now;
  });
  expect(ready.database).toMatch(advice);
  const [line] = await app.waitForOutput(new RegExp(`.*${LOG_SAYS.source}`), 30_000);
  expect(line).toMatch(advice);
  expect((await browser.get(`/instances/${id}`)).body).toContain(DASHBOARD_SAYS);
  expect((await createHttpSession(url).get('/healthz')).status).toBe(200);
}

function expectRefused({ status, body }: HttpPage) {
  expect([status, body]).toEqual([503, expect.stringContaining('nothing was done')]);
}

/** What a person does is refused in plain words, too. */
async function expectFormsRefused({ browser, id }: Begun) {
  const dashboard = await browser.get(`/instances/${id}`);
  expectRefused(await browser.submit(dashboard.form(`/instances/${id}/pause`)));
}

async function expectInstallRefused({ url, control }: Begun) {
  const company = await control.addCompany({ name: 'Later', plan: 'starter', contacts: 1, conversations: 1 });
  const browser = createHttpSession(url);
  expectRefused(await consent(browser, await browser.get('/install'), company));
}

async function expectWhole({ browser, id, app }: Pick<Begun, 'browser' | 'id' | 'app'>) {
  await waitForStatus(browser, id, isSynced, BACK_WITHIN_MS);
  for (const [list, count] of Object.entries(RECORDS)) {
    const ids = await downloadIds(browser, id, list);
    expect(ids.length).toBe(count);
    expect(new Set(ids).size).toBe(count);
  }
  expect((await app.stop('SIGTERM')).code, app.output()).toBe(0);
}

async function expectBack(begun: Begun) {
  const { app, browser, id } = begun;
  await app.waitForOutput(BACK, BACK_WITHIN_MS);
  expect((await readiness(begun)).code).toBe(200);
  expect((await browser.get(`/instances/${id}`)).body).not.toContain(DASHBOARD_SAYS);
  await expectWhole(begun);
}

/** Writes nonsense over all but the first page, as a disk does that dies. */
function damage(path: string): void {
  const other = new Sqlite(path);
  // All of it into the file itself.
  other.pragma('wal_checkpoint(TRUNCATE)');
  const file = openSync(path, 'r+');
  const size = statSync(path).size;
  writeSync(file, Buffer.alloc(size - 4_096, 0xff), 0, size - 4_096, 4_096);
  closeSync(file);
  // So that nobody believes what is kept in memory.
  other.pragma('user_version = 0');
  other.close();
}

/** What tells the log that is there from the one before it: it is another one each time that it begins anew. */
const readSalt = (log: string) => readFileSync(log).readBigUInt64BE(16);

/** Waits until nothing is left to do: the log, all of it copied, has begun anew, and has places for what is small. */
async function waitForIdle({ app, browser, id, database }: Begun) {
  await waitForStatus(browser, id, isSynced);
  for (const list of Object.keys(RECORDS)) {
    const search = `/instances/${id}/${list}?q=nobody`;
    await waitFor(async () => !(await browser.get(search)).body.includes('not searchable yet'));
  }
  const log = `/proc/${app.pid}/root${database}-wal`;
  const before = readSalt(log);
  await waitFor(() => readSalt(log) !== before);
}

describe.concurrent('a database in trouble is told clearly, and all goes on when that is over', {
  timeout: 150_000,
}, () => {
  test('another process keeps it locked', async () => {
    const begun = await begin(tempDir());
    const other = new Sqlite(begun.database);
    other.exec('begin immediate');
    await expectTold(begun, /Another process has kept the database locked/);
    await expectFormsRefused(begun);
    other.exec('rollback');
    other.close();
    await expectBack(begun);
  });

  test('its disk is full', async () => {
    const disk = makeSmallDisk();
    const begun = await begin(disk.dir, disk.through);
    disk.fill(begun.app.pid);
    await expectTold(begun, /The database cannot grow/);
    // What is small has its place in the log for a while: then there is said to be little room.
    await waitFor(async () => (await readiness(begun)).database.includes('SQLITE_FULL: database or disk'));
    await expectFormsRefused(begun);
    await expectInstallRefused(begun);
    expect(begun.app.output()).not.toContain('cannot rollback');
    disk.free(begun.app.pid);
    await expectBack(begun);
  });

  test('its disk fills while nothing is synced', async () => {
    const disk = makeSmallDisk();
    const begun = await begin(disk.dir, disk.through, '60');
    const { app, control, addCompany } = begun;
    await waitForIdle(begun);
    disk.fill(app.pid);
    await expectTold(begun, /The database cannot grow/);
    const exchanges = async () =>
      (await control.requests()).filter(({ path }) => path.endsWith('/token')).length;
    const before = await exchanges();
    await expectInstallRefused(begun);
    expect(await exchanges()).toBe(before);
    disk.free(app.pid);
    await app.waitForOutput(BACK, BACK_WITHIN_MS);
    const later = createHttpSession(begun.url);
    const laterId = await install(later, await addCompany('When there is room'));
    await expectBack({ ...begun, browser: later, id: laterId });
  });

  test('its files are moved away beneath it, until they are back and it is started again', async () => {
    const begun = await begin(tempDir());
    const { app, spawnApp, database, browser, id, addCompany } = begun;
    const away = tempDir();
    const move = (from: string, to: string) => {
      for (const end of ['', '-wal', '-shm']) renameSync(`${from}${end}`, `${to}${end}`);
    };
    move(database, join(away, 'app.db'));
    await expectTold(begun, /The database file has been removed .* put the right file in its place/);
    const other = createHttpSession(begun.url);
    const company = await addCompany('Too late');
    const refused = await consent(other, await other.get('/install'), company);
    expect([refused.status, refused.body]).toEqual([503, expect.stringContaining('nothing was done')]);
    expect((await app.stop('SIGTERM')).code, app.output()).toBe(0);
    expect(app.output()).not.toMatch(BACK);

    move(join(away, 'app.db'), database);
    const repaired = spawnApp();
    await repaired.waitForOutput(/The partner app runs/, 60_000);
    await install(other, company);
    await expectWhole({ browser, id, app: repaired });
  });

  test('its file is damaged, until a backup is in its place', async () => {
    const begun = await begin(tempDir());
    const { app, spawnApp, database, browser, id } = begun;
    const backup = join(tempDir(), 'backup.db');
    const source = new Sqlite(database);
    await source.backup(backup);
    source.close();
    damage(database);
    const ready = await waitFor(async () => {
      const now = await readiness(begun);
      return now.code === 503 && now;
    });
    expect(ready.database).toMatch(/The database file is damaged: .* backup/);
    await app.waitForOutput(LOG_SAYS);
    const page = await browser.get(`/instances/${id}`);
    expect([page.status, page.body]).toEqual([503, expect.stringContaining('cannot use its database')]);
    await app.stop('SIGKILL');

    const failed: EntryProcess = spawnApp();
    expect((await failed.exited).code).toBe(1);
    expect(failed.output()).toMatch(/The database file is damaged: .* backup/);

    await runDocumented('Restore', { database, backup });
    const repaired = spawnApp();
    await repaired.waitForOutput(/The partner app runs/, 60_000);
    expect((await readStatus(browser, id)).status).toBe('active');
    await expectWhole({ browser, id, app: repaired });
  });
});
