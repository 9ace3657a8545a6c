import { beforeEach, expect, test } from 'vitest';
import { keepSchedules, UPKEEP } from '../../jobs/schedules.ts';
import { waitFor } from '../support/wait-for.ts';
import { openTestQueues } from './test-queues.ts';

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const EVERY_MS = 30_000;
const TOLD = 'the clock was set back: what waited for a moment far ahead goes on';

const { redis, queues, worker, logger, lines } = await openTestQueues();

beforeEach(async () => {
  await redis.flushall();
  lines.length = 0;
});

/** Schedules as a worker has left them whose clock was so far ahead. */
async function schedule(aheadMs: number) {
  for (const name of Object.values(UPKEEP)) {
    const startDate = Date.now() + aheadMs + EVERY_MS;
    await queues.upkeep.upsertJobScheduler(name, { every: EVERY_MS, startDate }, { name });
  }
}

/** Jobs of runs, each of which waits for so long from now. */
async function wait(...waitsMs: number[]) {
  const runs = waitsMs.map((_, at) => ({ instanceId: `ins_${at}`, resource: 'contacts' }));
  await queues.enqueue(runs);
  for (const ms of waitsMs) {
    const job = await worker.getNextJob('token');
    await job?.moveToDelayed(Date.now() + ms, 'token');
  }
}

/** Looks once, as a worker does when it starts. @returns what waits still */
async function look(intervalMs = HOUR_MS) {
  // The last that it does is to have both come round at once, besides what the schedules themselves bring.
  const atOnce = async () =>
    (await queues.upkeep.getJobs(['waiting'])).filter(({ repeatJobKey }) => repeatJobKey === undefined)
      .length;
  const before = await atOnce();
  const { end } = keepSchedules(queues, logger, intervalMs);
  await waitFor(async () => (await atOnce()) === before + Object.keys(UPKEEP).length);
  end();
  const next = (await queues.upkeep.getJobSchedulers()).map(
    (scheduler) => (scheduler.next ?? 0) - Date.now(),
  );
  return { delayed: await queues.sync.getDelayedCount(), next };
}

const told = () => lines.filter(({ msg }) => msg === TOLD);

test('a schedule that stands further ahead than it comes round does so at once, and jobs that waited go on', async () => {
  await schedule(2 * HOUR_MS);
  // What was noted since waits for its time.
  await wait(2 * HOUR_MS + 1_000, 2 * HOUR_MS + MINUTE_MS, 5 * MINUTE_MS);
  const { delayed, next } = await look();
  expect(delayed).toBe(1);
  expect(next.length).toBe(2);
  for (const ms of next) expect(ms).toBeLessThanOrEqual(EVERY_MS);
  expect(told()).toMatchObject([{ level: 'warn', schedules: Object.values(UPKEEP), jobs: 2 }]);
  await look();
  expect(told().length).toBe(1);
});

test('so it is when the clock was set back by less than the longest wait', async () => {
  await schedule(2 * MINUTE_MS);
  await wait(2 * MINUTE_MS + 1_000, 10 * MINUTE_MS);
  expect((await look()).delayed).toBe(0);
});

test('a job that waits for longer than any may goes on, whatever its schedules say', async () => {
  await schedule(0);
  await wait(2 * HOUR_MS, 15 * MINUTE_MS);
  expect((await look()).delayed).toBe(1);
  expect(told()).toMatchObject([{ schedules: [], jobs: 1 }]);
});

test('of more jobs than are brought forward at a time, all go on', async () => {
  await wait(...Array.from({ length: 600 }, (_, at) => 2 * HOUR_MS + (at % 7)));
  expect((await look()).delayed).toBe(0);
});

test('where all is as it should be, or clocks of workers differ a little, nothing is touched or told', async () => {
  await schedule(3_000);
  await wait(MINUTE_MS, 15 * MINUTE_MS);
  const { delayed, next } = await look();
  expect(delayed).toBe(2);
  for (const ms of next) expect(ms).toBeGreaterThan(EVERY_MS);
  expect(told()).toEqual([]);
});

test('a schedule that is to come round more often from now on is not taken for one that stands ahead', async () => {
  await schedule(0);
  await look(3_000);
  expect(told()).toEqual([]);
});
