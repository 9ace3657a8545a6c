import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
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

/** Fetches a page as the limit permits. @returns the URL of the next page */
type Fetch = (url: string) => Promise<string>;

/** How long a peer waits after a 429 without `retry-after`. */
const WAIT_MS = 1_000;

/** The service refused with 429. */
class Refused extends Error {
  readonly retryMs: number;

  constructor(retryMs: number) {
    super('429');
    this.retryMs = retryMs;
  }
}

const agent = new Agent({ connections: 4, pipelining: 1 });

/** @throws Refused for 429, Error for any other refusal and at the end of a list: lists of benches do not end */
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

/** As much of bottleneck as is used here. */
interface Limiter {
  schedule<T>(work: () => Promise<T>): Promise<T>;
  on(event: 'failed', listener: (error: unknown) => number | undefined): Limiter;
}

const PEERS: Readonly<Record<string, (order: PeerOrder) => Promise<Fetch>>> = {
  // Bottleneck's documentation asks for minTime beside a reservoir. Its Redis takes multiples of 5 s alone.
  async bottleneck({ limit, windowMs, lists, token }) {
    const Bottleneck = await loadRival<new (options: object) => Limiter>();
    const options = {
      reservoir: limit,
      reservoirRefreshAmount: limit,
      reservoirRefreshInterval: windowMs,
      maxConcurrent: lists.length,
      minTime: windowMs / limit,
    };
    const waitFor = (error: unknown) => (error instanceof Refused ? error.retryMs : undefined);
    let limiter: Limiter | undefined;
    return (url) => {
      // The interval of the reservoir starts with the first request.
      limiter ??= new Bottleneck(options).on('failed', waitFor);
      return limiter.schedule(() => fetchPage(url, token));
    };
  },

  'sleeping loop': async ({ token }) => {
    const persist: Fetch = async (url) => {
      try {
        return await fetchPage(url, token);
      } catch (error) {
        if (!(error instanceof Refused)) throw error;
        await sleep(error.retryMs);
        return persist(url);
      }
    };
    return persist;
  },
};

const order = JSON.parse(process.argv[2] ?? '{}') as PeerOrder;
const { peer, lists, redisUrl, resume } = order;
const fetchNext = await PEERS[peer]?.(order);
/** One cursor a list, kept in Redis, so that the walk goes on after kill -9. */
const redis = new Redis(redisUrl);
const walk = async ({ name, url: first }: PeerOrder['lists'][number]) => {
  const key = `${peer}:${name}`;
  for (let url = (resume ? await redis.get(key) : null) ?? first; fetchNext; await redis.set(key, url))
    url = await fetchNext(url);
};
const run = () => void Promise.all(lists.map(walk));
if (resume) run();
else process.once('message', run);
process.on('disconnect', () => process.exit());
process.send?.('ready');
