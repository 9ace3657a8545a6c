import { WINDOW_MS } from '../contract/limits.ts';
import { PageChain } from '../service/next-url.ts';
import { type ReadPage, readItems } from '../store/page-items.ts';
import type { Run } from '../store/runs.ts';
import { isOutage } from './failure.ts';
import type { ListRequests } from './list-requests.ts';
import type { SliceContext, SliceWork, SyncParts } from './parts.ts';
import { fullRunAfter, MOST_CHECK_PAGES, nextCheck } from './schedule.ts';

/** A check keeps so much text in memory, in UTF-16 units. */
const MOST_TEXT = 32 * 1_024 * 1_024;

/** How a check ended: it met what is known, without a change or with some; it ran out before; or a request failed. */
export type CheckOutcome = 'unchanged' | 'changed' | 'ran_out' | 'failed';

interface Checked {
  outcome: CheckOutcome;
  hasChanges: boolean;
  /** Whether records may have moved behind the back of its full run: then the run deletes nothing. */
  isUnsure: boolean;
}

interface Head {
  /** The pages with news, in their order. */
  pages: ReadPage[];
  /** Pages and records in all. */
  count: number;
  records: number;
  /** `unchanged` once it met a page without news, or the end of the list. */
  outcome: Exclude<CheckOutcome, 'changed'>;
}

/**
 * Reads the first pages of a list, up to the first one without news, and writes what is new or changed. Where a service
 * lists by last activity, these are all changes since the last check or full run.
 *
 *     read     page 1 ── page 2 ── … ── page n without news, or the end; or it runs out
 *     write    page n-1 ── … ── page 1, each from its last record to its first
 *
 * So consumers get the changes in the order in which they happened. A check that dies leaves the newest pages unwritten,
 * and the next one reads on until it meets what is known.
 *
 * @param run the full run inside which it happens, with no page under way
 * @returns its outcome, whether a record changed, and whether it leaves its run unsure; `until` without a permit for the
 *   first page (milliseconds since 1970); `lost` when another worker has the list
 * @throws only errors of this process: the database or Redis cannot be reached, or it shuts down
 */
export async function runCheck(
  parts: SyncParts,
  work: SliceWork,
  run: Run | undefined,
  requests: ListRequests,
  { signal, logger }: SliceContext,
): Promise<Checked | { until: number } | 'lost'> {
  const { claim, list, resource } = work;
  const now = parts.now ?? Date.now;
  const startedAt = now();
  let head: Head = { pages: [], count: 0, records: 0, outcome: 'failed' };
  try {
    const read = await readHead(parts, work, requests);
    if (read === 'lost' || 'until' in read) return read;
    head = read;
  } catch (err) {
    if (signal.aborted || isOutage(err)) throw err;
    logger.info({ err }, 'a check failed; the next one comes after its interval');
  }
  const { pages, count, records } = head;
  const counts = requests.takeCounts();
  const isCut = head.outcome !== 'unchanged';
  const fullDueAt = isCut ? fullRunAfter(list, resource, parts.intervalMs, startedAt) : undefined;
  const total = { created: 0, changed: 0, rejected: 0 };
  for (const page of inWritingOrder(pages)) {
    const written = await parts.pages.commitCheck(claim, page, fullDueAt, now());
    if (written === undefined) return 'lost';
    total.created += written.created;
    total.changed += written.changed;
    total.rejected += page.rejected.length;
  }
  const changes = total.created + total.changed;
  const outcome: CheckOutcome = !isCut && changes > 0 ? 'changed' : head.outcome;
  const requestsSoFar = (run?.requests ?? 0) + counts.requests;
  const next = nextCheck(list, { outcome, requestsSoFar }, parts.checkIntervalMs, now());
  const facts = { pages: count, records, ...total, ...counts, started_at: startedAt, finished_at: now() };
  // A check that failed wrote nothing: the next one finds all of it. After the last page there is no next one.
  const isLast = run !== undefined && run.pages > 0 && run.cursor === null;
  const isUnsure = outcome === 'ran_out' || (outcome === 'failed' && isLast);
  const end = { isInRun: run !== undefined, isUnsure, found: changes > 0 ? facts : undefined };
  // Pages that fail outside a full run are told by the next one.
  const sooner = fullDueAt !== undefined && run === undefined && fullDueAt < list.full_due_at;
  const values = { ...next, ...(sooner && { full_due_at: fullDueAt }) };
  if (!(await parts.runs.endCheck(claim, end, values))) return 'lost';
  Object.assign(list, next, { caught: list.caught + changes });
  parts.onCheck?.({ outcome });
  return { outcome, hasChanges: changes > 0, isUnsure };
}

async function readHead(
  { pages: store }: SyncParts,
  { claim }: SliceWork,
  requests: ListRequests,
): Promise<Head | { until: number } | 'lost'> {
  const chain = new PageChain();
  const head: Head = { pages: [], count: 0, records: 0, outcome: 'ran_out' };
  const waitsUntil = performance.now() + WINDOW_MS;
  let text = 0;
  for (let cursor: string | null = null; head.count < MOST_CHECK_PAGES && text <= MOST_TEXT; ) {
    // With pages in memory it keeps its slot while it waits for permits.
    const fetched = await requests.page(cursor, chain, head.count > 0 ? { waitsUntil } : {});
    if ('isLost' in fetched) return 'lost';
    if ('until' in fetched && head.count === 0) return { until: fetched.until };
    if ('until' in fetched) break;
    const { texts, next } = fetched.page;
    const page = readItems(texts);
    head.count++;
    head.records += page.items.size;
    text += texts.reduce((sum, { length }) => sum + length, 0);
    const hasNews = await store.hasNews(claim, page);
    if (hasNews) head.pages.push(page);
    // An empty page says nothing about the next one.
    if (next === null || (texts.length > 0 && !hasNews)) return { ...head, outcome: 'unchanged' };
    cursor = next;
  }
  return head;
}

/** From the last page to the first, each from its last record to its first. Of a record, the form that was read last. */
function* inWritingOrder(pages: readonly ReadPage[]): Generator<ReadPage> {
  const written = new Set<string>();
  for (const { items, rejected } of pages.toReversed()) {
    const fresh = [...items].reverse().filter(([id]) => !written.has(id));
    for (const [id] of fresh) written.add(id);
    yield { items: new Map(fresh), rejected };
  }
}
