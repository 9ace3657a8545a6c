import Database from 'better-sqlite3';
import { expect, test } from 'vitest';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const SMALL = { plan: 'starter', contacts: 1, conversations: 1 } as const;
const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;

const TOLD = /the clock was set back: what waited for a moment far ahead goes on/g;

/** An app and a worker whose clock is so far ahead; the test's own, and so the sandbox's, is right. */
async function begin(aheadMs: number, options: Parameters<typeof startTestApp>[0]) {
  const testApp = await startTestApp({ workers: false, ...options });
  const worker = spawnEntry('test/trust/set-back-worker.ts', { ...testApp.env, AHEAD_MS: String(aheadMs) });
  await worker.waitForOutput(/the workers run/);
  return {
    ...testApp,
    worker,
    /** Installs a company; answers what tells of it. */
    async addCompany(facts: { name: string; contacts?: number }) {
      const company = await testApp.control.addCompany({ ...SMALL, ...facts });
      const browser = testApp.session();
      const id = await install(browser, company);
      const requests = async (path: string) =>
        (await testApp.control.requests()).filter(
          (request) => request.company_id === company.id && request.path === path,
        ).length;
      return { id, browser, requests, status: () => readStatus(browser, id) };
    },
  };
}

type Company = Awaited<ReturnType<Awaited<ReturnType<typeof begin>>['addCompany']>>;

/** Waits for further runs, which nobody has asked for. */
async function waitForRuns({ requests }: Company, runs: number) {
  const before = await requests('/contacts');
  await waitFor(async () => (await requests('/contacts')) >= before + runs, {
    what: `${runs} further runs`,
  });
}

test('a clock that is set back by days: runs come round, a token that is due is renewed, and the next worker goes on, too', async () => {
  const { app, addCompany, config, env, worker } = await begin(2 * DAY_MS, {
    env: { SYNC_INTERVAL_MINUTES: '0.05' },
  });
  const [runs, due] = [await addCompany({ name: 'Runs' }), await addCompany({ name: 'Due' })];
  for (const { browser, id } of [runs, due]) await waitForStatus(browser, id, isSynced);
  // From here on nothing but the sweep asks for its tokens.
  await app.control.pause(due.id);

  process.kill(worker.pid, 'SIGUSR2');
  await worker.waitForOutput(/the clock is right/);
  const before = await due.requests('/oauth/token');
  const db = new Database(new URL(config.databaseUrl).pathname);
  db.prepare(
    'update tokens set refresh_issued_at = ?, refresh_due_at = ?, refreshed_at = ? where instance_id = ?',
  ).run(Date.now() - 180 * DAY_MS, Date.now() - HOUR_MS, Date.now() - 3 * DAY_MS, due.id);
  db.close();
  await waitForRuns(runs, 3);
  // Between two runs: while one is under way, none is to come.
  const nextAt = await waitFor(async () => (await runs.status()).next_sync_at);
  expect(Date.parse(nextAt)).toBeLessThan(Date.now() + 30_000);
  await waitFor(async () => (await due.requests('/oauth/token')) > before);
  expect(worker.output().match(TOLD)?.length).toBe(1);

  await worker.stop('SIGTERM');
  const ahead = spawnEntry('test/trust/set-back-worker.ts', { ...env, AHEAD_MS: String(DAY_MS) });
  await ahead.waitForOutput(/the workers run/);
  await waitForRuns(runs, 1);
  await ahead.stop('SIGTERM');
  const next = spawnEntry('src/worker.ts', env);
  await waitForRuns(runs, 3);
  expect(next.output().match(TOLD)?.length).toBe(1);
});

test('a clock that is set back by an hour while a sync waits for the limit: it goes on', async () => {
  const { addCompany, control, worker } = await begin(HOUR_MS, {});
  const fault = { status: 429, headers: { 'retry-after': '20' } };
  await control.fault({ match: { path: '/contacts' }, fault, times: 1 });
  const { browser, id } = await addCompany({ name: 'Waits', contacts: 200 });
  const waits = ({ resources: { contacts } }: Awaited<ReturnType<typeof readStatus>>) =>
    contacts?.waiting_for === 'limit' && Date.parse(contacts.waiting_until ?? '') > Date.now() + HOUR_MS / 2;
  await waitForStatus(browser, id, waits);
  process.kill(worker.pid, 'SIGUSR2');
  await waitForStatus(browser, id, isSynced);
});
