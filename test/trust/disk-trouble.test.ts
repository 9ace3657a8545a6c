import { closeSync, openSync, statSync, writeSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { afterAll, describe, expect, test } from 'vitest';
import { SandboxControl } from '../acceptance/support/sandbox-control.ts';
import { createCheckedSandbox } from '../sandbox/checked-sandbox.ts';
import { runDocumented } from '../store/operations-page.ts';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession } from '../support/http-session.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const RECORDS = { contacts: 2_500, conversations: 2_500 };

/** From the moment at which the trouble is over, in milliseconds. */
const BACK_WITHIN_MS = 60_000;

const LOG_SAYS = /the database cannot be written, trying on/;

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

async function expectWhole({ browser, id, app }: Pick<Begun, 'browser' | 'id' | 'app'>) {
  await waitForStatus(browser, id, isSynced, BACK_WITHIN_MS);
  for (const [list, count] of Object.entries(RECORDS)) {
    const ids = await downloadIds(browser, id, list);
    expect(ids.length).toBe(count);
    expect(new Set(ids).size).toBe(count);
  }
  expect((await app.stop('SIGTERM')).code, app.output()).toBe(0);
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

describe('a database that is damaged is told clearly, and all goes on with a backup', {
  timeout: 150_000,
}, () => {
  test('its file is damaged until a backup is in its place', async () => {
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
