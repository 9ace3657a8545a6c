import { join } from 'node:path';
import { Agent, request } from 'undici';
import { openBareStore, type PageTaker } from './bare-store.ts';
import { openDutifulStore } from './dutiful-store.ts';

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
  /** An empty directory for the store. */
  dir: string;
  lists: BareList[];
  /** Ends after so many pages, or else when every list is at its end. */
  pages?: number;
  /** Or after so many milliseconds. */
  forMs?: number;
  /** Requests under way at the same time, each for another list. */
  atOnce: number;
  /** Given when it is to do all that the app owes for a page, too: where the budget is kept. */
  dutiesWith?: string;
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
  taker: PageTaker,
  agent: Agent,
  { list, next }: Place,
  done: BareDone,
): Promise<string | null> {
  const headers = { authorization: `Bearer ${list.token}` };
  await taker.begin(list);
  const answer = await request(next, { dispatcher: agent, headers });
  const bytes = Buffer.from(await answer.body.arrayBuffer());
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${bytes.toString().slice(0, 300)}`);
  const page = await taker.take(list, bytes, answer.headers);
  done.pages += 1;
  done.records += page.records;
  return page.next;
}

/**
 * The least that copies lists: undici with keep-alive, JSON.parse, one prepared upsert a row and the cursor in one
 * transaction a page. No budget, no queue, no tokens that expire, no look at what changed, no fence. The lists take
 * turns, a page each, as companies that are synced at the same time do.
 */
async function copyAll(order: BareOrder): Promise<BareDone> {
  const { dir, lists, pages = Number.POSITIVE_INFINITY, forMs = Number.POSITIVE_INFINITY, atOnce } = order;
  const url = `file:${join(dir, 'bare.db')}`;
  const taker = await (order.dutiesWith === undefined
    ? openBareStore(url, lists)
    : openDutifulStore(url, lists, order.dutiesWith));
  const agent = new Agent({ keepAliveTimeout: 30_000 });
  const done: BareDone = { pages: 0, records: 0, wallMs: 0, cpuMs: 0 };
  const startedAt = performance.now();
  const usedBefore = process.cpuUsage();
  const turns: Place[] = lists.map((list) => ({ list, next: list.url }));
  let begun = 0;
  const isEnough = () => begun >= pages || performance.now() - startedAt >= forMs;
  const work = async () => {
    for (let place = turns.shift(); place !== undefined && !isEnough(); place = turns.shift()) {
      begun += 1;
      const next = await copyPage(taker, agent, place, done);
      if (next !== null) turns.push({ list: place.list, next });
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, lists.length) }, work));
  done.wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(usedBefore);
  done.cpuMs = (user + system) / 1_000;
  await taker.close();
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
