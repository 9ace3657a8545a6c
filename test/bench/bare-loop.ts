import { Agent, request } from 'undici';
import { type BareStore, openBareStore } from './bare-store.ts';

/** One list to be copied. */
export interface BareList {
  /** Names the company in the store. */
  company: string;
  resource: string;
  /** Full URL of the first page. */
  url: string;
  token: string;
}

/** What the loop is to do. */
export interface BareOrder {
  /** Of an empty database. */
  databaseUrl: string;
  lists: BareList[];
  /** Ends after so many milliseconds, or when every list is at its end. */
  forMs?: number;
  /** Requests under way at the same time, each for another list. */
  atOnce: number;
}

/** What came of it. */
export interface BareDone {
  pages: number;
  records: number;
  wallMs: number;
  /** Time on a processor, all threads of the process together, in milliseconds. */
  cpuMs: number;
}

/** A list on its way. */
interface Place {
  list: BareList;
  next: string;
}

async function copyPage(
  store: BareStore,
  agent: Agent,
  { list, next }: Place,
  done: BareDone,
): Promise<string | null> {
  const headers = { authorization: `Bearer ${list.token}` };
  const answer = await request(next, { dispatcher: agent, headers });
  const body = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${body.slice(0, 300)}`);
  const stored = await store.write(`${list.company} ${list.resource}`, JSON.parse(body));
  done.pages += 1;
  done.records += stored.records;
  return stored.next;
}

/**
 * The least that copies lists: undici with keep-alive, JSON.parse, and the records with the cursor in one transaction a
 * page. No budget, no queue, no tokens that expire, no look at what changed, no fence. The lists take turns, a page each,
 * as companies that are synced at the same time do.
 */
async function copyAll(order: BareOrder): Promise<BareDone> {
  const { lists, forMs = Number.POSITIVE_INFINITY, atOnce } = order;
  const store = await openBareStore(order.databaseUrl);
  const agent = new Agent({ keepAliveTimeout: 30_000 });
  const done: BareDone = { pages: 0, records: 0, wallMs: 0, cpuMs: 0 };
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  const turns: Place[] = lists.map((list) => ({ list, next: list.url }));
  const isEnough = () => performance.now() - startedAt >= forMs;
  const work = async () => {
    for (let place = turns.shift(); place !== undefined && !isEnough(); place = turns.shift()) {
      const next = await copyPage(store, agent, place, done);
      if (next !== null) turns.push({ list: place.list, next });
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, lists.length) }, work));
  done.wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(usedBefore);
  done.cpuMs = (user + system) / 1_000;
  await store.close();
  await agent.close();
  return done;
}

process.on('message', (order: BareOrder) => {
  copyAll(order).then(
    (done) => process.send?.(done),
    (error: unknown) => {
      process.stderr.write(`${error instanceof Error ? error.stack : String(error)}\n`);
      process.exit(1);
    },
  );
});
process.on('disconnect', () => process.exit());
