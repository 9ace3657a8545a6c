import { Agent, request } from 'undici';
import { type BareStore, openBareStore, type PlainPage } from './bare-store.ts';

/** What the loop is to do. */
export interface BareOrder {
  /** Lists to copy: a name for the store, the URL of the first page, an API token. */
  lists: { name: string; url: string; token: string }[];
  /** Requests under way at the same time, each for another list. */
  atOnce: number;
  /** Of an empty database; without it the loop stores nothing. */
  databaseUrl?: string;
  /** The loop stops after so many milliseconds, and until then begins each list again at its end. */
  forMs?: number;
}

/** What the loop did. */
export interface BareDone {
  pages: number;
  wallMs: number;
  /** CPU time of the process with all its threads. */
  cpuMs: number;
}

const agent = new Agent({ keepAliveTimeout: 30_000 });

/**
 * The least that copies lists: undici with keep-alive, JSON.parse, and one transaction a page for records and cursor. It
 * has no budget, queue, fence or refresh of tokens, and compares nothing. The lists take turns, a page each.
 */
async function copyAll({ lists, atOnce, databaseUrl, forMs }: BareOrder): Promise<BareDone> {
  const store = databaseUrl === undefined ? undefined : await openBareStore(databaseUrl);
  const [startedAt, usedBefore] = [performance.now(), process.cpuUsage()];
  const turns = lists.map((list) => ({ list, next: list.url }));
  let pages = 0;
  const work = async () => {
    for (let turn = turns.shift(); turn !== undefined; turn = turns.shift()) {
      const next = await copyPage(store, turn.list, turn.next);
      pages += 1;
      if (forMs !== undefined && performance.now() - startedAt >= forMs) return;
      if (next !== null) turns.push({ list: turn.list, next });
      else if (forMs !== undefined) turns.push({ list: turn.list, next: turn.list.url });
    }
  };
  await Promise.all(Array.from({ length: Math.min(atOnce, lists.length) }, work));
  const wallMs = performance.now() - startedAt;
  const { user, system } = process.cpuUsage(usedBefore);
  await store?.close();
  return { pages, wallMs, cpuMs: (user + system) / 1_000 };
}

async function copyPage(
  store: BareStore | undefined,
  { name, token }: BareOrder['lists'][number],
  url: string,
): Promise<string | null> {
  const answer = await request(url, { dispatcher: agent, headers: { authorization: `Bearer ${token}` } });
  const body = await answer.body.text();
  if (answer.statusCode !== 200) throw new Error(`${answer.statusCode} ${body.slice(0, 300)}`);
  const page = JSON.parse(body) as PlainPage;
  await store?.write(name, page);
  return page._pagination.next;
}

process.on('message', async (order: BareOrder) => process.send?.(await copyAll(order)));
process.on('disconnect', () => process.exit());
