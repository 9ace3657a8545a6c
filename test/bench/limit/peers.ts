import { setTimeout as sleep } from 'node:timers/promises';
import { DelayedError, type Job, Queue, Worker, type WorkerOptions } from 'bullmq';
import { Redis } from 'ioredis';
import { RateLimiterRedis, RateLimiterRes } from 'rate-limiter-flexible';
import { Agent, request } from 'undici';
import type { PlainPage } from '../bare-store.ts';
import { loadRival } from './rivals.ts';

/** What a peer is to do: copy the lists of one company page by page, and keep to its limit. */
export interface PeerOrder {
  peer: string;
  lists: { name: string; url: string }[];
  token: string;
  redisUrl: string;
  /** Requests in a window that this process may send. */
  limit: number;
  windowMs: number;
  /** It was killed, and its Redis knows where it stood. */
  resume: boolean;
}

/** Gets ready; the function that it answers does the work. */
type Peer = (order: PeerOrder) => Promise<() => Promise<unknown>>;

/** How long a peer waits after a 429 without `retry-after`. */
const WAIT_MS = 1_000;
/** More jobs than there can be: BullMQ needs a limiter for its manual limit. */
const JOBS_MAX = 1_000_000;
// After kill -9 BullMQ's own values take a minute.
const RECOVERY = { lockDuration: 8_000, stalledInterval: 4_000, maxStalledCount: 1_000 } as const;

/** The service refused with 429. */
class Refused extends Error {
  readonly retryMs: number;

  constructor(retryMs: number) {
    super('429');
    this.retryMs = retryMs;
  }
}

const agent = new Agent({ connections: 4, pipelining: 1 });

/** @returns the URL of the next page @throws Refused for 429, Error for any other refusal and at the end of a list: lists of benches do not end */
async function fetchPage(url: string, token: string): Promise<string> {
  const answer = await request(url, { headers: { authorization: `Bearer ${token}` }, dispatcher: agent });
  const text = await answer.body.text();
  if (answer.statusCode === 429) {
    const seconds = Number(answer.headers['retry-after']);
    throw new Refused(seconds > 0 ? seconds * 1_000 : WAIT_MS);
  }
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${text.slice(0, 300)}`);
  const { next } = (JSON.parse(text) as PlainPage)._pagination;
  if (next === null) throw new Error('The list has ended.');
  return next;
}

/** Calls until the service does not refuse; sleeps for as long as it says. */
async function persist<T>(call: () => Promise<T>): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await sleep(error.retryMs);
    }
  }
}

/** One cursor a list, kept in Redis, so that the walk goes on after kill -9. */
function prepareWalk(
  { peer, lists, redisUrl, resume }: PeerOrder,
  page: (url: string) => Promise<string>,
): () => Promise<unknown> {
  const redis = new Redis(redisUrl);
  const walk = async ({ name, url: first }: PeerOrder['lists'][number]) => {
    const key = `${peer}:${name}`;
    for (let url = (resume ? await redis.get(key) : null) ?? first; ; await redis.set(key, url))
      url = await page(url);
  };
  return () => Promise.all(lists.map(walk));
}

/** How a queue keeps to the limit. Both functions throw to put a job off. */
interface QueueRule {
  limiter?: WorkerOptions['limiter'];
  before?(job: Job, token: string | undefined): Promise<void>;
  refused(job: Job, token: string | undefined, retryMs: number, queue: Queue): Promise<never>;
}

/** BullMQ: a job a page, which adds the job of the next page. */
async function prepareQueue(order: PeerOrder, { limiter, before, refused }: QueueRule) {
  const { peer: prefix, lists, resume } = order;
  const connect = () => new Redis(order.redisUrl, { maxRetriesPerRequest: null });
  const queue = new Queue('pages', {
    connection: connect(),
    prefix,
    defaultJobOptions: { removeOnComplete: true },
  });
  const add = (list: string, url: string, page: number) =>
    queue.add('page', { list, url, page }, { jobId: `${list}-${page}` });
  const work = async (job: Job, token: string | undefined) => {
    await before?.(job, token);
    const { list, url, page } = job.data;
    try {
      await add(list, await fetchPage(url, order.token), page + 1);
    } catch (error) {
      if (!(error instanceof Refused)) throw error;
      await refused(job, token, error.retryMs, queue);
    }
  };
  const options = { prefix, concurrency: lists.length, autorun: false, ...RECOVERY };
  const worker = new Worker('pages', work, {
    connection: connect(),
    ...options,
    ...(limiter && { limiter }),
  });
  await Promise.all([queue.waitUntilReady(), worker.waitUntilReady()]);
  return async () => {
    if (!resume) await Promise.all(lists.map(({ name, url }) => add(name, url, 1)));
    await worker.run();
  };
}

async function delay(job: Job, token: string | undefined, ms: number): Promise<never> {
  await job.moveToDelayed(Date.now() + ms, token);
  throw new DelayedError();
}

/** As much of bottleneck as is used here. */
interface Limiter {
  schedule<T>(work: () => Promise<T>): Promise<T>;
  on(event: 'failed', listener: (error: unknown) => number | undefined): void;
}

const PEERS: Readonly<Record<string, Peer>> = {
  'bullmq-limiter': (order) =>
    prepareQueue(order, { limiter: { max: order.limit, duration: order.windowMs }, refused: delay }),

  'bullmq-manual': (order) =>
    prepareQueue(order, {
      limiter: { max: JOBS_MAX, duration: order.windowMs },
      async refused(_job, _token, retryMs, queue) {
        await queue.rateLimit(retryMs);
        throw Worker.RateLimitError();
      },
    }),

  'rate-limiter-flexible': (order) => {
    const limiter = new RateLimiterRedis({
      storeClient: new Redis(order.redisUrl, { maxRetriesPerRequest: null }),
      keyPrefix: order.peer,
      points: order.limit,
      duration: order.windowMs / 1_000,
    });
    const before = async (job: Job, token: string | undefined) => {
      const refusal: unknown = await limiter.consume('company').then(
        () => undefined,
        (error) => error,
      );
      if (refusal instanceof RateLimiterRes) await delay(job, token, refusal.msBeforeNext);
      if (refusal !== undefined) throw refusal;
    };
    return prepareQueue(order, { before, refused: delay });
  },

  // Bottleneck's documentation asks for minTime beside a reservoir. Its Redis takes multiples of 5 s alone.
  async bottleneck(order) {
    const { limit, windowMs, lists, token } = order;
    const Bottleneck = await loadRival<new (options: object) => Limiter>('bottleneck');
    const create = () => {
      const created = new Bottleneck({
        reservoir: limit,
        reservoirRefreshAmount: limit,
        reservoirRefreshInterval: windowMs,
        maxConcurrent: lists.length,
        minTime: windowMs / limit,
      });
      created.on('failed', (error) => (error instanceof Refused ? error.retryMs : undefined));
      return created;
    };
    let limiter: Limiter | undefined;
    return prepareWalk(order, (url) => {
      // The interval of the reservoir starts with the first request.
      limiter ??= create();
      return limiter.schedule(() => fetchPage(url, token));
    });
  },

  async 'p-throttle'(order) {
    const { limit, windowMs: interval, token } = order;
    const throttle = await loadRival<(options: object) => <F>(work: F) => F>('p-throttle');
    const fetchThrottled = throttle({ limit, interval, strict: true })((url: string) =>
      fetchPage(url, token),
    );
    return prepareWalk(order, (url) => persist(() => fetchThrottled(url)));
  },

  'plain-loop': async (order) => prepareWalk(order, (url) => persist(() => fetchPage(url, order.token))),
};

const order = JSON.parse(process.argv[2] ?? '{}') as PeerOrder;
const run = await PEERS[order.peer]?.(order);
if (order.resume) run?.();
else process.once('message', () => run?.());
process.on('disconnect', () => process.exit());
process.send?.('ready');
