import { checkLength, endless } from '../service/next-url.ts';
import type { ListKey, Run } from '../store/runs.ts';
import { markDeletions } from './deletion-brake.ts';
import { endSlice, runFacts } from './failure.ts';
import { PageReader } from './page-reader.ts';
import type { SliceContext, SliceOutcome, SyncParts } from './parts.ts';

/** A slice ends after so many pages or so long (milliseconds) if other jobs wait, and after `mostMs` in any case. */
const SLICE = { pages: 10, ms: 5_000, mostMs: 60_000 } as const;

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
 * Works on a run for a time slice: page after page while the budget grants requests, then the deletions. Only the
 * database remembers the progress.
 *
 * @throws only errors of this process: the database or Redis cannot be reached
 */
export async function runSlice(parts: SyncParts, key: ListKey, context: SliceContext): Promise<SliceOutcome> {
  const { runs, pages } = parts;
  const now = parts.now ?? Date.now;
  const resource = parts.resources.find(({ name }) => name === key.resource);
  const claimed = resource && (await runs.claim(key));
  const instance = claimed && (await parts.instances.find(key.instanceId));
  // The list is paused or ended, another worker finished it, or this version of the app does not know the resource.
  if (claimed === undefined || resource === undefined || instance === undefined) return { kind: 'ended' };

  let run = claimed;
  const claim = { run: run.id, list: run.list, fence: run.fence };
  const work = { instance, resource, claim };
  const isOver = beginSlice(context);
  const changes = notifier((isLast) => parts.onChanges(key, isLast));
  const reader = new PageReader({ parts, work, signal: context.signal, isOver }, run);
  const wait = async (until: number | null, waitsFor: 'limit' | 'retry' | 'turn') => {
    await runs.wait(claim, { for: waitsFor, until, ...reader.takeCounts() });
    return until === null
      ? ({ kind: 'yield', pages: run.pages } as const)
      : ({ kind: 'wait', until, pages: run.pages } as const);
  };
  // A pause, a disconnect or another worker raised the fence. The next claim finds out which.
  const lost = () => ({ kind: 'wait', until: now() + LOST_PAUSE_MS, pages: run.pages }) as const;
  try {
    while (run.pages === 0 || run.cursor !== null) {
      if (reader.isOver) return await wait(null, 'turn');
      checkProgress(run);
      const startedFrom = run.cursor;
      const page = await reader.read(run);
      if ('until' in page) {
        return await wait(page.until, page.isBlocked && run.error_kind !== null ? 'retry' : 'limit');
      }
      if ('isLost' in page) return lost();
      const written = await pages.commit(claim, startedFrom, page, now());
      if (written === undefined) return lost();
      const rejected = written.run.rejected - run.rejected;
      if (rejected > 0)
        context.logger.warn({ records: rejected }, 'the page has records that cannot be kept');
      parts.onPage?.({ resource: resource.name });
      if (written.hasChanges) changes.note();
      run = written.run;
    }
    const held = await markDeletions(parts, work, run, () => isOver(0), context);
    changes.note();
    if (held === 'lost') return lost();
    if (held === 'over') return await wait(null, 'turn');
    const finished = await runs.finish(claim, held, now());
    if (finished === undefined) return { kind: 'ended' };
    context.logger.info(runFacts(work, finished, now()), 'the run is finished');
    parts.onRunEnd?.({ resource: resource.name, outcome: 'finished' });
    if (held > 0) parts.onEvent?.(instance.id, { type: 'deletions_held', resource: resource.name, held });
    return { kind: 'ended' };
  } catch (error) {
    const facts = { work, isOfPage: reader.isOfPage(error), counts: reader.takeCounts() };
    return await endSlice(parts, run, error, context, facts);
  } finally {
    changes.end();
    await reader.close();
  }
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
