import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { pathOf } from '../../src/store/existing-file.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import type { HttpSession } from '../support/http-session.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp } from '../support/test-app.ts';
import { startTestRedis } from '../support/test-redis.ts';

const HOUR_S = 3_600;
const COMPANY = { name: 'Watched', plan: 'starter', contacts: 20, conversations: 10 } as const;

/** What a gauge without labels says; undefined when it is missing. */
async function gauge(session: HttpSession, name: string): Promise<number | undefined> {
  const { body } = await session.get('/metrics');
  const line = body.split('\n').find((text) => text.startsWith(`${name} `));
  return line === undefined ? undefined : Number(line.slice(name.length));
}

test('while Redis is away, what the database and the files of the workers tell is told', async () => {
  const redis = new URL((await startTestRedis()).url);
  const proxy = await startTcpProxy(Number(redis.port));
  redis.port = String(proxy.port);
  const { control, session } = await startTestApp({ redisUrl: redis.href });
  const browser = session();
  await waitForStatus(browser, await install(browser, await control.addCompany(COMPANY)), isSynced);
  await expect.poll(() => gauge(browser, 'figures_read')).toBe(1);

  await proxy.refuse();
  await expect.poll(() => gauge(browser, 'figures_read')).toBe(0);
  expect(await gauge(browser, 'sync_oldest_run_age_seconds')).toBe(0);
  expect(await gauge(browser, 'sync_workers')).toBe(1);
  expect(await gauge(browser, 'refresh_tokens_overdue')).toBe(0);
  expect(await gauge(browser, 'refresh_token_first_end_seconds')).toBeGreaterThan(0);

  await proxy.pass();
  await expect.poll(() => gauge(browser, 'figures_read')).toBe(1);
});

test('a copy whose runs always fail stands still, however often they begin anew', async () => {
  const { control, session, config } = await startTestApp();
  const browser = session();
  const company = await control.addCompany(COMPANY);
  for (const path of ['/contacts', '/conversations']) {
    await control.fault({ match: { path }, fault: { status: 403 }, times: 9 });
  }
  const id = await install(browser, company);
  const hasFailed = ({ resources }: Awaited<ReturnType<typeof waitForStatus>>) =>
    Object.values(resources).every(({ state }) => state === 'failed');
  const first = await waitForStatus(browser, id, hasFailed);
  expect(await gauge(browser, 'sync_oldest_run_age_seconds')).toBeGreaterThan(0);

  const db = await openDatabase(config.databaseUrl);
  const since = Date.now() - 7 * HOUR_S * 1_000;
  await db.updateTable('runs').set({ started_at: since, behind_since: since }).execute();
  await db.destroy();
  const press = async (action: string) => {
    const dashboard = await browser.get(`/instances/${id}`);
    await browser.submit(dashboard.form(`/instances/${id}/${action}`));
  };
  await press('sync');
  await waitForStatus(
    browser,
    id,
    (status) =>
      hasFailed(status) &&
      Object.entries(status.resources).every(
        ([name, { finished_at }]) => finished_at !== first.resources[name]?.finished_at,
      ),
  );
  expect(await gauge(browser, 'sync_oldest_run_age_seconds')).toBeGreaterThan(7 * HOUR_S);

  // Nothing was to be copied meanwhile.
  await press('pause');
  expect(await gauge(browser, 'sync_oldest_run_age_seconds')).toBe(0);
  await press('resume');
  const age = await gauge(browser, 'sync_oldest_run_age_seconds');
  expect(age).toBeGreaterThan(0);
  expect(age).toBeLessThan(HOUR_S);

  await control.clearFaults();
  await press('sync');
  await waitForStatus(browser, id, isSynced);
  expect(await gauge(browser, 'sync_oldest_run_age_seconds')).toBe(0);
});

test('a database that is locked leaves no process ready, though all figures can be read', async () => {
  const { session, config } = await startTestApp();
  const browser = session();
  const expectReady = async (ready: 0 | 1) => {
    await expect.poll(() => gauge(browser, 'app_ready')).toBe(ready);
    expect((await browser.get('/readyz')).status).toBe(ready === 1 ? 200 : 503);
    expect(await gauge(browser, 'figures_read')).toBe(1);
  };
  await expectReady(1);

  const other = new Sqlite(pathOf(config.databaseUrl));
  other.exec('begin immediate');
  await expectReady(0);
  other.exec('rollback');
  other.close();
  await expectReady(1);
});
