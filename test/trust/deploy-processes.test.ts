import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { UPKEEP } from '../../jobs/schedules.ts';
import { findFreePort } from '../support/free-port.ts';
import { install } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';
import { makeNextVersion, NEXT_MIGRATION } from './next-version.ts';

/** A deploy: processes of this version of the app and of the next one, on the same database and the same Redis. */
const testApp = await startTestApp({ workers: false, sandbox: { latencyMs: 5 } });
const next = makeNextVersion({ migrates: true });
const path = testApp.config.databaseUrl.replace('file:', '');
const reader = new Sqlite(path, { readonly: true });

const READY = /the workers run/;
const ENDS = 'a newer version of the app has changed the database: this process ends';
const WAITS = /"waitedMs":(\d+),"msg":"another process changes the database: waiting for it"/g;

const worker = (env: Record<string, string> = {}, root?: string) =>
  spawnEntry('src/worker.ts', { ...testApp.env, ...env }, root === undefined ? {} : { root });
const migrations = (db = reader) =>
  db.prepare('select name from kysely_migration order by name').pluck().all() as string[];
const runOf = (id: string, resource: string) =>
  reader.prepare('select * from runs where instance_id = ? and resource = ?').get(id, resource) as
    | { state: string; pages: number; error: string | null; attempt: number; finished_at: number | null }
    | undefined;

test.concurrent('a migration ends the processes of the version before, which hand over; nothing is lost or done twice', async () => {
  const port = await findFreePort();
  const old = [worker(), spawnEntry('src/web.ts', { ...testApp.env, PORT: String(port) })];
  await Promise.all([old[0]?.waitForOutput(READY), old[1]?.waitForOutput(/the web app listens/)]);
  const company = await testApp.control.addCompany({
    name: 'Deployed',
    plan: 'enterprise',
    contacts: 8_950,
    conversations: 100,
  });
  // Slow, so that the run is under way until the newer version has taken it over.
  await testApp.control.fault({ match: { path: '/contacts' }, fault: { delay_ms: 400 }, times: 1_000 });
  const id = await install(testApp.session(), company);
  const records = company.counts.contacts ?? 0;
  const pagesBeyond = (count: number) => waitFor(() => (runOf(id, 'contacts')?.pages ?? 0) > count);
  await pagesBeyond(1);

  // Killed within its migration, the next version leaves everything as it was: who runs goes on.
  const known = migrations();
  const killed = worker({ HANGS: '1' }, next);
  await killed.waitForOutput(/migrating/);
  await killed.stop('SIGKILL');
  expect(migrations()).toEqual(known);
  await pagesBeyond(runOf(id, 'contacts')?.pages ?? 0);
  expect(runOf(id, 'contacts')?.state).toBe('running');

  // Two at once migrate once; the version before ends by itself.
  const newer = [worker({}, next), worker({}, next)];
  expect(await Promise.all(old.map(({ exited }) => exited))).toEqual(
    Array(2).fill({ code: 1, signal: null }),
  );
  for (const process of old) {
    expect(process.output().split(ENDS).length).toBe(2);
    expect(process.output()).toContain(NEXT_MIGRATION);
    // Who looks whether the database is well may have met it first.
    const errors = process.output().match(/^.*"level":"error".*$/gm) ?? [];
    expect(errors.filter((line) => !line.includes('NewerSchemaError'))).toEqual([]);
  }
  await testApp.control.clearFaults();
  // So that the new resource does not wait for the sweep’s next round.
  await testApp.app.queues.upkeep.add(UPKEEP.startRuns, {});
  await waitFor(() => ['contacts', 'conversations', 'tags'].every((name) => runOf(id, name)?.finished_at), {
    what: 'every run of the newer version to end',
  });
  const run = runOf(id, 'contacts');
  expect(run).toMatchObject({ state: 'idle', attempt: 0, error: null });
  const copied = reader
    .prepare('select count(*) from records join runs using (list) where instance_id = ? and resource = ?')
    .pluck();
  expect(copied.get(id, 'contacts')).toBe(records);
  const asked = (await testApp.control.requests()).filter(
    (entry) => entry.company_id === company.id && entry.path.endsWith('/contacts'),
  );
  expect(asked.filter(({ status }) => status !== 200)).toEqual([]);
  // Twice at most what was read or under way, and not written, when a process was killed or ended.
  expect(asked.length).toBeLessThanOrEqual((run?.pages ?? 0) + 4);
  expect(migrations()).toEqual([...known, NEXT_MIGRATION].toSorted());
  expect(newer.map((one) => one.output().split('migrating').length - 1).toSorted()).toEqual([0, 1]);

  // Started after the deploy, or at a step back, the version before says so in a sentence and touches nothing.
  const version = reader.pragma('schema_version');
  const late = worker();
  expect(await late.exited).toEqual({ code: 1, signal: null });
  expect(late.output()).toMatch(/newer version of this app \(9000-next\).*Start the newer version/);
  expect(reader.pragma('schema_version')).toEqual(version);
  expect((await Promise.all(newer.map((one) => one.stop()))).map(({ code }) => code)).toEqual([0, 0]);
});

test.concurrent('processes that start while another one migrates for long wait, say so, and can be ended', async () => {
  const file = `${tempDir()}/app.db`;
  const holder = new Sqlite(file);
  holder.pragma('journal_mode = WAL');
  holder.exec('begin immediate');
  // A Redis of their own: or they would take the jobs of the other test, whose database they do not have.
  const { url } = await startTestRedis();
  const waiting = [0, 1, 2].map(() => worker({ DATABASE_URL: `file:${file}`, REDIS_URL: url }));
  // Longer than SQLite’s own patience for a lock.
  const waited = (output: string) => Math.max(0, ...[...output.matchAll(WAITS)].map(([, ms]) => Number(ms)));
  await waitFor(() => waiting.every((one) => waited(one.output()) > 5_000));
  expect(await waiting[2]?.stop('SIGTERM')).toEqual({ code: 0, signal: null });

  holder.exec('rollback');
  await Promise.all(waiting.slice(0, 2).map((one) => one.waitForOutput(READY)));
  expect(migrations(holder)).toContain('0001-initial');
  holder.close();
});
