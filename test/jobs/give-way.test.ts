import { DelayedError, type Job } from 'bullmq';
import { beforeEach, expect, test } from 'vitest';
import { giveWay } from '../../jobs/give-way.ts';
import type { SyncJobData } from '../../jobs/queues.ts';
import { openTestQueues } from './test-queues.ts';

const { queues, worker } = await openTestQueues();
beforeEach(() => queues.sync.obliterate({ force: true }));

type Outcome = Parameters<typeof giveWay>[2];

const install = (...companies: string[]) =>
  queues.enqueue(companies.map((instanceId) => ({ instanceId, resource: 'contacts' })));

async function take(): Promise<Job<SyncJobData>> {
  const job = await worker.getNextJob('token', { block: false });
  if (job === undefined) throw new Error('no job waits for a place');
  return job;
}

/** One slice of each job whose turn it is, with these outcomes; the companies in the order of their turns. */
async function turns(outcomeOf: (company: string) => Outcome, count: number): Promise<string[]> {
  const order: string[] = [];
  for (let turn = 0; turn < count; turn++) {
    const job = await take();
    order.push(job.data.instanceId);
    await expect(giveWay(job, 'token', outcomeOf(job.data.instanceId))).rejects.toThrow(DelayedError);
  }
  return order;
}

test('jobs that give way take turns', async () => {
  await install('a', 'b', 'c');
  const order = await turns(() => ({ kind: 'yield', pages: 25 }), 7);
  expect(order).toEqual(['a', 'b', 'c', 'a', 'b', 'c', 'a']);
});

test('a company that installs now comes before those that have had their first slice', async () => {
  await install('a', 'b');
  await turns(() => ({ kind: 'yield', pages: 25 }), 2);
  await install('new');
  expect(await turns(() => ({ kind: 'yield', pages: 25 }), 4)).toEqual(['new', 'a', 'b', 'new']);
});

test('those with a window’s worth of pages come after those with fewer', async () => {
  await install('giant', 'other giant', 'small');
  const pages = (company: string) => (company === 'small' ? 50 : 1_000);
  await turns((company) => ({ kind: 'yield', pages: pages(company) }), 3);
  const order = await turns((company) => ({ kind: 'yield', pages: pages(company) }), 3);
  expect(order).toEqual(['small', 'small', 'small']);
  await (await take()).moveToDelayed(Date.now() + 3_600_000, 'token');
  expect(await turns((company) => ({ kind: 'yield', pages: pages(company) }), 3)).toEqual([
    'giant',
    'other giant',
    'giant',
  ]);
});

test('a giant whose wait for the limit is over does not overtake one that installs now', async () => {
  await install('giant');
  await turns(() => ({ kind: 'wait', until: Date.now() - 1, pages: 1_000 }), 1);
  await install('new');
  expect(await turns(() => ({ kind: 'yield', pages: 1_000 }), 2)).toEqual(['new', 'giant']);
});

test('a job that waits has no turn before its time', async () => {
  await install('waiting', 'other');
  const until = Date.now() + 3_600_000;
  await turns(
    (company) => (company === 'other' ? { kind: 'yield', pages: 1 } : { kind: 'wait', until, pages: 1 }),
    2,
  );
  expect(await turns(() => ({ kind: 'yield', pages: 2 }), 2)).toEqual(['other', 'other']);
});
