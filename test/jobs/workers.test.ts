import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { adjustConcurrency } from '../../jobs/workers.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { RunStore } from '../../src/store/runs.ts';
import { installCompany } from '../support/install-many.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const RESOURCES = ['contacts', 'conversations'];

const testApp = await startTestApp({ web: false });
const { app, control, redisUrl } = testApp;
const redis = new Redis(redisUrl);
afterAll(() => redis.disconnect());

async function open({ config }: TestApp) {
  const db = await openDatabase(config.databaseUrl);
  afterAll(() => db.destroy());
  const runs = new RunStore(db);
  const runOf = async (id: string, resource: string) =>
    (await runs.lists(id)).find((list) => list.resource === resource)?.run;
  const isFinished = async (id: string) => {
    const states = await Promise.all(RESOURCES.map(async (resource) => (await runOf(id, resource))?.state));
    return states.every((state) => state === 'finished');
  };
  return { db, runOf, finished: (id: string) => waitFor(() => isFinished(id)) };
}
const { db, runOf, finished } = await open(testApp);

test('the job of a run without a permit is delayed, and other companies go on', async () => {
  const { id, company } = await installCompany(testApp, db, { contacts: 5, conversations: 5 });
  const match = { path: '/contacts', company_id: company.id };
  await control.fault({ match, fault: { status: 429, headers: { 'retry-after': '600' } } });
  await app.control.syncNow(id, 'contacts');
  await waitFor(async () => (await runOf(id, 'contacts'))?.waiting_for === 'limit');
  const mark = await control.mark();
  await app.control.syncNow(id, 'conversations');
  const waiting = await waitFor(async () => {
    const run = await runOf(id, 'conversations');
    return run?.waiting_for === 'limit' && run;
  });
  expect(waiting).toMatchObject({ state: 'waiting', requests: 0, attempt: 0, error_kind: null });
  expect(waiting.wait_until).toBeGreaterThan(Date.now() + 500_000);
  await waitFor(async () => (await app.queues.syncCounts()).delayed === 2);
  expect(await app.queues.syncCounts()).toEqual({ waiting: 0, active: 0, delayed: 2, failed: 0 });

  const other = await installCompany(testApp, db, { contacts: 5, conversations: 5 });
  await app.control.syncNow(other.id);
  await finished(other.id);
  const own = (await control.requests(mark)).filter(({ company_id }) => company_id === company.id);
  expect(own).toEqual([]);
});

test('a new worker erases old deleted records', async () => {
  const started = await startTestApp({ web: false, workers: false });
  const { db: database } = await open(started);
  const { id } = await installCompany(started, database, { contacts: 5, conversations: 5 });
  const list = await database
    .insertInto('lists')
    .values({ instance_id: id, resource: 'tags', change_seq: 2 })
    .returning('id')
    .executeTakeFirstOrThrow();
  const days = [31, 29];
  const values = days.map((day, at) => {
    const moment = { deleted_at: Date.now() - day * 86_400_000, change_seq: at + 1, created_seq: 1 };
    return { list: list.id, external_id: `${day}`, hash: 'h', document: '{}', ...moment };
  });
  await database.insertInto('records').values(values).execute();
  const workers = started.app.startWorkers();
  const kept = async () => {
    const rows = database.selectFrom('records').select('external_id').where('list', '=', list.id);
    return (await rows.where('document', 'is not', null).execute()).map((row) => row.external_id);
  };
  await expect.poll(kept, { timeout: 5_000 }).toEqual(['29']);
  await workers.close();
});

test('two installations on one Redis work apart, under keys of their own', async () => {
  const second = await startTestApp({ web: false, redisUrl });
  const other = await open(second);
  const [one, two] = [
    await installCompany(testApp, db, { contacts: 5, conversations: 5 }),
    await installCompany(second, other.db, { contacts: 5, conversations: 5 }),
  ];
  await Promise.all([app.control.syncNow(one.id), second.app.control.syncNow(two.id)]);
  await Promise.all([finished(one.id), other.finished(two.id)]);
  const ids = await Promise.all(
    [db, other.db].map(async (database) => {
      const setting = database.selectFrom('settings').select('value').where('name', '=', 'installation_id');
      return (await setting.executeTakeFirstOrThrow()).value;
    }),
  );
  expect(new Set(ids).size).toBe(2);
  const prefixes = new Set((await redis.keys('*')).map((key) => key.split(':')[0]));
  expect(prefixes).toEqual(new Set(ids));
  const [own, others] = [await app.queues.workers(), await second.app.queues.workers()];
  expect([own?.length, others?.length]).toEqual([1, 1]);
  expect(own?.[0]?.id).not.toBe(others?.[0]?.id);
});

test('a process may have more runs at work while its CPU is idle, and fewer while it is busy', async () => {
  const worker = { concurrency: 64 };
  const slots = adjustConcurrency(worker, app.queues);
  await waitFor(() => worker.concurrency > 64, 'more runs');
  while (worker.concurrency > 32) {
    for (const from = performance.now(); performance.now() - from < 600; );
    await new Promise((resolve) => setTimeout(resolve));
  }
  slots.close();
  expect(worker.concurrency).toBeGreaterThanOrEqual(8);
});
