import Sqlite from 'better-sqlite3';
import { type Job, Queue, Worker } from 'bullmq';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { QUEUE } from '../../jobs/queues.ts';
import { UPKEEP } from '../../jobs/schedules.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { RunStore } from '../../src/store/runs.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** A deploy: another version of the app works on the same queues, and has put jobs into them that this one meets. */
const testApp = await startTestApp({ workers: false, sandbox: { latencyMs: 20 } });
const { app, log } = testApp;
const connection = createRedis(testApp.redisUrl, 'worker', log.logger);
const queues = {
  sync: new Queue(QUEUE.sync, { connection }),
  upkeep: new Queue(QUEUE.upkeep, { connection }),
};
const hand = new Worker(QUEUE.sync, null, { connection, name: 'died', autorun: false });
const db = await openDatabase(testApp.config.databaseUrl);
const runs = new RunStore(db);
afterAll(async () => {
  await Promise.all([hand.close(true), queues.sync.close(), queues.upkeep.close(), db.destroy()]);
  connection.disconnect();
});

const OPTIONS = { removeOnComplete: true, removeOnFail: true };
const MESSAGE = 'a job of another version of the app is left alone';
const browser = testApp.session();

/** Jobs of the other version that this one cannot understand. */
const foreign: Job[] = [];
const heldByDead: Job[] = [];
let id = '';
let tickets = { instanceId: '', resource: '' };
let ticketsRun: unknown;

beforeAll(async () => {
  const company = await testApp.control.addCompany({ name: 'Deployed', plan: 'starter', contacts: 20 });
  id = await install(browser, company);
  await queues.sync.obliterate({ force: true });
  const add = (name: string, data: unknown, jobId = `other-${foreign.length}`) =>
    queues.sync.add(name, data, { ...OPTIONS, jobId });

  // A worker of the other version that was killed, holding a job of a form that this one does not know.
  const dir = `${testApp.config.databaseUrl.replace('file:', '')}-workers`;
  const victim = spawnEntry('test/support/hold-presence.ts', {}, { args: [dir, 'died'] });
  await victim.waitForOutput(/entered/);
  heldByDead.push(await add('batch', [1, 2, 3], 'held'));
  const held = await hand.getNextJob('died:1');
  expect(held?.id).toBe('held');
  await victim.stop('SIGKILL');

  // A resource that the other version has, and that it is half through.
  tickets = { instanceId: id, resource: 'tickets' };
  await runs.start(tickets, Date.now());
  await runs.claim(tickets);
  ticketsRun = await runs.find(tickets);
  foreign.push(await add('tickets', tickets, `${id}.tickets`));
  // Another purpose, and forms that nobody here knows.
  foreign.push(await add('merge', { instanceId: id, resource: 'contacts' }));
  for (const data of [null, 'contacts', 7, {}, { instanceId: 7, resource: 'contacts' }, { run: tickets }]) {
    foreign.push(await add('contacts', data));
  }
  foreign.push(await queues.upkeep.add('compact', { tables: ['records'] }, { ...OPTIONS, jobId: 'compact' }));
  foreign.push(await queues.upkeep.add('fork', null, { ...OPTIONS, jobId: 'fork' }));
  await queues.upkeep.upsertJobScheduler('report', { every: 1_000 }, { name: 'report', opts: OPTIONS });

  // What it knows more about than this one does: two members and an option.
  await add(
    'contacts',
    { instanceId: id, resource: 'contacts', since: 5, hints: { by: 'push' } },
    `${id}.contacts`,
  );
  const workers = app.startWorkers();
  afterAll(() => workers.close());
});

const told = () =>
  log.lines.filter(({ msg }) => msg === MESSAGE).map(({ queue, name }) => `${queue} ${name}`);
const statesOf = (jobs: Job[]) => Promise.all(jobs.map((job) => job.getState()));

test('jobs that this version does not understand stay as they are, and nothing fails', async () => {
  await waitFor(async () => (await statesOf(foreign)).every((state) => state === 'delayed'), {
    what: 'the jobs to be left alone',
  });
  for (const job of foreign) {
    const now = await queues[job.queueName as keyof typeof queues].getJob(job.id ?? '');
    expect(now?.data).toEqual(job.data);
    expect(now?.attemptsMade).toBe(0);
  }
  expect(await runs.find(tickets)).toEqual(ticketsRun);
  expect(log.lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
});

test('a job that says more than this version knows is understood, and goes on to its end', async () => {
  await waitForStatus(browser, id, isSynced);
  await waitFor(async () => (await queues.sync.getJob(`${id}.contacts`)) === undefined);
});

test('a job that a killed worker of the other version held is given back, and left alone then', async () => {
  await waitFor(async () => (await statesOf(heldByDead)).every((state) => state === 'delayed'));
  const [job] = heldByDead;
  expect((await queues.sync.getJob(job?.id ?? ''))?.data).toEqual([1, 2, 3]);
  expect(log.lines.filter(({ msg }) => msg === 'dead workers could not be looked for')).toEqual([]);
});

test('however often they come round, each kind is told in the log once, and a schedule is kept', async () => {
  const rounds = async () => (await queues.upkeep.getJobScheduler('report'))?.iterationCount ?? 0;
  const [before, job] = [await rounds(), foreign[0]];
  for (let turn = 0; turn < 2; turn++) {
    await job?.promote();
    await waitFor(async () => (await job?.getState()) === 'delayed');
  }
  expect((await queues.sync.getJob(job?.id ?? ''))?.attemptsStarted).toBeGreaterThanOrEqual(3);
  await waitFor(async () => (await rounds()) >= before + 2);
  const kinds = ['sync batch', 'sync contacts', 'sync merge', 'sync tickets'];
  expect(told().toSorted()).toEqual([...kinds, 'upkeep compact', 'upkeep fork', 'upkeep report']);
  // One to come, and none that was put back.
  expect((await queues.upkeep.getJobs()).filter(({ name }) => name === 'report').length).toBeLessThanOrEqual(
    2,
  );
});

test('the sweep finds what this version knows, and leaves the other’s runs to the other', async () => {
  await foreign[0]?.remove();
  await runs.start({ instanceId: id, resource: 'contacts' }, Date.now());
  const finishedAt = async () => (await runs.find({ instanceId: id, resource: 'contacts' }))?.finished_at;
  await queues.upkeep.add(UPKEEP.startRuns, {}, OPTIONS);
  await waitFor(finishedAt);
  expect(await queues.sync.getJob(`${id}.tickets`)).toBeUndefined();
  expect(await runs.find(tickets)).toEqual(ticketsRun);
});

test('a run whose database a newer version has migrated is handed over as it stood, with its job', async () => {
  const company = await testApp.control.addCompany({ name: 'Late', plan: 'enterprise', contacts: 11_000 });
  const run = { instanceId: await install(testApp.session(), company), resource: 'contacts' };
  await waitFor(async () => ((await runs.find(run))?.pages ?? 0) > 1);
  const newer = new Sqlite(testApp.config.databaseUrl.replace('file:', ''));
  const page = newer.prepare(
    'select cursor, pages, records, attempt, error from runs where instance_id = ? and resource = ?',
  );
  const before = newer.transaction(() => {
    newer.exec(
      "alter table runs add column remark text; insert into kysely_migration values ('9000-next', '')",
    );
    return page.get(run.instanceId, run.resource);
  })();

  const job = await waitFor(() => queues.sync.getJob(`${run.instanceId}.contacts`));
  await waitFor(async () => (await job.getState()) === 'delayed');
  await job.promote();
  await waitFor(async () => (await job.getState()) === 'delayed');
  expect(page.get(run.instanceId, run.resource)).toEqual(before);
  expect(await runs.find(run)).toMatchObject({
    state: 'waiting',
    waiting_for: 'turn',
    attempt: 0,
    error: null,
  });
  expect(log.lines.filter(({ level }) => level === 'error' || level === 'fatal')).toEqual([]);
  newer.close();
});
