import { type Job, Queue, Worker, type WorkerOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { fetchPage } from './fetch-page.ts';
import type { PeerOrder } from './peer.ts';

/** What a job carries: which page of which list, and where it is. */
interface PageJob {
  list: string;
  url: string;
  page: number;
}

/** How a queue's peer keeps to the limit. */
export interface QueueRule {
  worker?: Pick<WorkerOptions, 'limiter'>;
  /** Asked before each request; it throws to put the job off. */
  before?(job: Job, token: string | undefined): Promise<void>;
  /** After a 429; it throws to put the job off. */
  refused(job: Job, token: string | undefined, retryMs: number, queue: Queue): Promise<never>;
}

// After kill -9 the next process has the jobs as soon as ours has: BullMQ's own values take a minute.
const RECOVERY = { lockDuration: 8_000, stalledInterval: 4_000, maxStalledCount: 1_000 } as const;

/** A job for each page, which adds that of the next page; two at a time. What to do next lies in Redis, with BullMQ. */
export async function prepareQueueWalk(order: PeerOrder, rule: QueueRule): Promise<() => Promise<void>> {
  const { lists, token: accessToken, redisUrl, prefix, resume } = order;
  const queue = new Queue<PageJob>('pages', {
    connection: new Redis(redisUrl, { maxRetriesPerRequest: null }),
    prefix,
    defaultJobOptions: { removeOnComplete: true },
  });
  const add = (data: PageJob) => queue.add('page', data, { jobId: `${data.list}-${data.page}` });
  const worker = new Worker<PageJob>(
    'pages',
    async (job, token) => {
      await rule.before?.(job, token);
      const { list, url, page } = job.data;
      const fetched = await fetchPage(url, accessToken);
      if ('retryMs' in fetched) return rule.refused(job, token, fetched.retryMs, queue);
      await add({ list, url: fetched.next, page: page + 1 });
    },
    {
      connection: new Redis(redisUrl, { maxRetriesPerRequest: null }),
      prefix,
      concurrency: lists.length,
      autorun: false,
      ...RECOVERY,
      ...rule.worker,
    },
  );
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  return async () => {
    if (!resume) await Promise.all(lists.map(({ name, url }) => add({ list: name, url, page: 1 })));
    await worker.run();
  };
}
