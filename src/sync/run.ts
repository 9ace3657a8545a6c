import { PARTNER_LIMIT } from '../contract/limits.ts';
import { checkLength, endless } from '../service/next-url.ts';
import type { ListKey, Run } from '../store/runs.ts';
import { runCheck } from './check.ts';
import { endSlice, runFacts } from './failure.ts';
import { ListRequests } from './list-requests.ts';
import { isRepeated, settleMissing } from './missing-records.ts';
import { PageReader } from './page-reader.ts';
import type { SliceContext, SliceOutcome, SliceWork, SyncParts } from './parts.ts';
import { afterFullRun, isCheckDue, MOST_CHECK_PAGES } from './schedule.ts';

/** A slice ends after so many pages or so long (milliseconds) if other jobs wait, and after `mostMs` in any case. */
const SLICE = { pages: 10, ms: 5_000, mostMs: 60_000 } as const;

/** Fewer pages than any full run has: the job of a check goes first. */
const CHECK_FIRST = -1;

/** A company's name is asked for again after this time, in milliseconds: a day. */
const NAME_AGE_MS = 24 * 60 * 60_000;

/** The job of a lost run comes back after this pause, in milliseconds. */
const LOST_PAUSE_MS = 500;

/** The consumers hear of changes this often, in milliseconds. */
const NOTIFY_EVERY_MS = 5_000;

/** The first check of a run's progress. The next ones follow whenever its pages have doubled. */
const FIRST_CHECK_PAGES = 64;

/** Records may come twice because they moved while the run was paging. */
const ALLOWED_REPEATS = 1_000;

/** A run over so many pages needs two hours, and must find a new record on each of them. */
const MANY_PAGES = 16_384;

/**
 * Works on a list for a time slice: on its open full run, or else on a check that is due. Only the database remembers the
 * progress.
 *
 * @throws only errors of this process: the database or Redis cannot be reached
 */
export async function runSlice(
  parts: SyncParts,
  key: ListKey & { list?: number },
  context: SliceContext,
): Promise<SliceOutcome> {
  const resource = parts.resources.find(({ name }) => name === key.resource);
  const claimed = resource && (await parts.runs.claim(key, (parts.now ?? Date.now)()));
  const instance = claimed && (await parts.instances.find(key.instanceId));
  // The list is paused or ended, nothing is due, or this version of the app does not know the resource.
  if (claimed === undefined || resource === undefined || instance === undefined) return { kind: 'ended' };
  const work: SliceWork = { instance, resource, claim: claimed.claim, list: claimed.list };
  return claimed.run === undefined
    ? checkAlone(parts, key, work, context)
    : continueRun(parts, key, work, claimed.run, context);
}

/** A pause, a disconnect, *Sync now* or another worker raised the fence. The next claim finds out which. */
function lost({ now = Date.now }: SyncParts, pages: number): SliceOutcome {
  return { kind: 'wait', until: now() + LOST_PAUSE_MS, pages };
}

async function checkAlone(
  parts: SyncParts,
  key: ListKey,
  work: SliceWork,
  context: SliceContext,
): Promise<SliceOutcome> {
  const requests = new ListRequests(parts, work, context.signal);
  try {
    const checked = await runCheck(parts, work, undefined, requests, context);
    if (checked === 'lost') return lost(parts, CHECK_FIRST);
    if ('until' in checked) return { kind: 'wait', until: checked.until, pages: CHECK_FIRST };
    if (checked.hasChanges) parts.onChanges(key, true);
    return { kind: 'ended' };
  } catch (error) {
    if (context.signal.aborted) return { kind: 'yield', pages: CHECK_FIRST };
    throw error;
  }
}

/** Goes on with a full run: page after page while the budget grants requests, with checks in between, then the end. */
async function continueRun(
  parts: SyncParts,
  key: ListKey,
  work: SliceWork,
  claimed: Run,
  context: SliceContext,
): Promise<SliceOutcome> {
  const { runs, pages, checkIntervalMs } = parts;
  const { instance, resource, claim, list } = work;
  const now = parts.now ?? Date.now;
  let run: Run = claimed;
  const isOver = beginSlice(context);
  const isDue = () => isCheckDue(list, run, checkIntervalMs, now());
  const changes = notifier((isLast) => parts.onChanges(key, isLast));
  const reader = new PageReader({ parts, work, signal: context.signal, isOver, isCheckDue: isDue }, run);
  const wait = async (until: number | null, waitsFor: 'limit' | 'retry' | 'turn'): Promise<SliceOutcome> => {
    await runs.wait(claim, { for: waitsFor, until, ...reader.requests.takeCounts() });
    if (until === null) return { kind: 'yield', pages: run.pages };
    return { kind: 'wait', until, pages: run.pages };
  };
  /** @returns how the slice ends, if the check could not be made */
  const check = async (): Promise<SliceOutcome | undefined> => {
    const checked = await runCheck(parts, work, run, reader.requests, context);
    if (checked === 'lost') return lost(parts, run.pages);
    if ('until' in checked) return wait(checked.until, 'limit');
    if (checked.hasChanges) changes.note();
    if (checked.isUnsure) run = { ...run, is_unsure: 1 };
    return undefined;
  };
  try {
    while (run.pages === 0 || run.cursor !== null) {
      if (reader.isOver) return await wait(null, 'turn');
      const ended = reader.isIdle && isDue() ? await check() : undefined;
      if (ended !== undefined) return ended;
      checkProgress(run);
      const startedFrom = run.cursor;
      const page = await reader.read(run);
      if ('until' in page) {
        return await wait(page.until, page.isBlocked && run.error_kind !== null ? 'retry' : 'limit');
      }
      if ('isLost' in page) return lost(parts, run.pages);
      const written = await pages.commit(claim, startedFrom, page, now(), MOST_CHECK_PAGES);
      if (written === undefined) return lost(parts, run.pages);
      const rejected = written.run.rejected - run.rejected;
      if (rejected > 0)
        context.logger.warn({ records: rejected }, 'the page has records that cannot be kept');
      parts.onPage?.({ resource: resource.name });
      if (written.hasChanges) changes.note();
      run = written.run;
    }
    // Records may have moved behind the run's back, but not in a list of one page.
    const needsCheck = checkIntervalMs > 0 && run.pages > 1 && run.deleted === 0;
    const ended = needsCheck ? await check() : undefined;
    if (ended !== undefined) return ended;
    const settled = await settleMissing(parts, work, run, reader.requests, () => isOver(0), context);
    changes.note();
    if (settled === 'lost') return lost(parts, run.pages);
    if (settled === 'over') return await wait(null, 'turn');
    await renameCompany(parts, work, reader.requests, now());
    const limit = (await parts.limitOf(instance.company_id ?? instance.id)) ?? PARTNER_LIMIT;
    const end = { ...settled, isRepeated: isRepeated(run, settled), ...reader.requests.takeCounts() };
    // Somebody may have set its interval since it was claimed.
    const current = (await runs.list(list.id)) ?? list;
    const next = afterFullRun(current, run, resource, parts, limit, now());
    const finished = await runs.finish(claim, end, next, now());
    if (finished === undefined) return lost(parts, run.pages);
    context.logger.info(runFacts(work, finished, now()), 'the run is finished');
    parts.onRunEnd?.({ resource: resource.name, outcome: 'finished' });
    const { held, heldRun } = settled;
    // The runs after it hold the same ones.
    if (heldRun === run.id) {
      parts.onEvent?.(instance.id, { type: 'deletions_held', resource: resource.name, held });
    }
    return end.isRepeated ? { kind: 'yield', pages: 0 } : { kind: 'ended' };
  } catch (error) {
    const isOfPage = reader.requests.isOfRequest(error);
    const facts = { work, isOfPage, counts: reader.requests.takeCounts() };
    return await endSlice(parts, run, error, context, facts);
  } finally {
    changes.end();
    await reader.close();
  }
}

/** Asks what the company is called by now, once a day. Where that fails, the name stays until the next day. */
async function renameCompany(
  { instances }: SyncParts,
  { instance }: SliceWork,
  requests: ListRequests,
  now: number,
): Promise<void> {
  const { id, company_id, named_at } = instance;
  const since = now - NAME_AGE_MS;
  if (company_id === null || named_at >= since) return;
  // Other lists of the company may end their runs now, too.
  if (!(await instances.beginNaming(id, since, now))) return;
  const found = await requests.identity().catch(() => undefined);
  if (found === undefined || !('id' in found) || found.id !== company_id || found.name === undefined) return;
  await instances.rename(id, found.name);
}

/** @returns whether the slice is over after so many requests */
function beginSlice({ othersWait }: SliceContext): (requests: number) => boolean {
  const begunAt = performance.now();
  return (requests) => {
    const ms = performance.now() - begunAt;
    if (ms >= SLICE.mostMs) return true;
    return (requests >= SLICE.pages || ms >= SLICE.ms) && othersWait();
  };
}

/** Notifies the consumers of the first change at once, of further ones every few seconds, and at the end. */
function notifier(notify: (isLast: boolean) => void) {
  let notifiedAt: number | undefined;
  return {
    note() {
      if (notifiedAt !== undefined && performance.now() - notifiedAt < NOTIFY_EVERY_MS) return;
      notifiedAt = performance.now();
      notify(false);
    },
    end() {
      if (notifiedAt !== undefined) notify(true);
    },
  };
}

/**
 * Notices a run without progress: its pages repeat the same records, or are empty, without an end. URLs do not show
 * that, as each may be new. The counts come from the run's row, so a crash hides nothing.
 *
 * @throws ServiceError that closes the run
 */
function checkProgress({ pages, records, seen }: Run): void {
  checkLength(pages);
  if (pages < FIRST_CHECK_PAGES || !Number.isInteger(Math.log2(pages))) return;
  if (records > 2 * seen + ALLOWED_REPEATS) {
    throw endless(
      `The service's pages repeat themselves: ${pages} pages held ${records} records, but only ${seen} different ones.`,
    );
  }
  if (pages >= MANY_PAGES && seen < pages) {
    throw endless(`The service's pages are almost empty: ${pages} pages held only ${seen} records.`);
  }
}
