import { checkLength, endless } from '../service/next-url.ts';
import type { ListKey, Run } from '../store/runs.ts';
import { markDeletions } from './deletion-brake.ts';
import { endSlice, runFacts } from './failure.ts';
import { PageReader } from './page-reader.ts';
import type { SliceContext, SliceOutcome, SyncParts } from './parts.ts';

/** A slice gives way to others that wait after so many pages, or so long; and to anybody after a minute. */
const SLICE = { pages: 10, ms: 5_000, mostMs: 60_000 } as const;

/** A run that was lost is looked at again after so long, in milliseconds. */
const LOST_PAUSE_MS = 500;

/** The consumers are notified of changes once in so many milliseconds. */
const NOTIFY_EVERY_MS = 5_000;

/** A run is looked at from so many pages on, and then whenever it has twice as many. */
const FIRST_LOOK_PAGES = 64;

/** Records that may come again for no bad reason: they moved while the run was paging. */
const SOME_REPEATS = 1_000;

/** So many pages with next to nothing on them: two hours' requests. */
const MANY_PAGES = 16_384;

/**
 * Works on a run for a while: page after page, as long as the budget grants requests and the slice lasts; after the
 * last page, the deletions. Everything it knows afterwards is in the database.
 *
 * @throws only what is wrong with this process (the database or Redis cannot be reached)
 */
export async function runSlice(parts: SyncParts, key: ListKey, context: SliceContext): Promise<SliceOutcome> {
  const { runs, pages } = parts;
  const now = parts.now ?? Date.now;
  const resource = parts.resources.find(({ name }) => name === key.resource);
  const claimed = resource && (await runs.claim(key));
  const instance = claimed && (await parts.instances.find(key.instanceId));
  // Paused, ended, finished by another worker, or a resource that this version of the app does not know.
  if (claimed === undefined || resource === undefined || instance === undefined) return { kind: 'ended' };

  let run = claimed;
  const claim = { run: run.id, list: run.list, fence: run.fence };
  const work = { instance, resource, claim };
  const isOver = beginSlice(context);
  const changes = new ChangeNotice((isOver) => parts.onChanges(key, isOver));
  const reader = new PageReader(parts, work, run, context, isOver);
  // It was paused or ended, or another worker has it. It may have been resumed since: the next claim tells.
  const lost = () => ({ kind: 'wait', until: now() + LOST_PAUSE_MS, pages: run.pages }) as const;
  const wait = async (until: number | null, waitsFor: 'limit' | 'retry' | 'turn') =>
    runs.wait(claim, { for: waitsFor, until, ...reader.takeCounts() });
  try {
    while (!isReadToEnd(run)) {
      if (reader.isOver) {
        await wait(null, 'turn');
        return { kind: 'yield', pages: run.pages };
      }
      checkProgress(run);
      const startedFrom = run.cursor;
      const page = await reader.read(run);
      if ('until' in page) {
        await wait(page.until, page.isBlocked && run.error_kind !== null ? 'retry' : 'limit');
        return { kind: 'wait', until: page.until, pages: run.pages };
      }
      if ('isLost' in page) return lost();
      const written = await pages.commit(claim, startedFrom, page, now());
      if (written === undefined) return lost();
      if (written.run.rejected > run.rejected) {
        const records = written.run.rejected - run.rejected;
        context.logger.warn({ records }, 'records cannot be kept: the dashboard lists them');
      }
      parts.onPage?.({ resource: resource.name });
      if (written.hasChanges) changes.note();
      run = written.run;
    }
    const held = await markDeletions(parts, work, run, () => isOver(0), context);
    changes.note();
    if (held === 'lost') return lost();
    if (held === 'over') {
      await wait(null, 'turn');
      return { kind: 'yield', pages: run.pages };
    }
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

/** A run without a cursor has read nothing, or everything. */
function isReadToEnd({ pages, cursor }: Run): boolean {
  return pages > 0 && cursor === null;
}

function beginSlice({ othersWait }: SliceContext): (asked: number) => boolean {
  const begunAt = performance.now();
  return (asked) => {
    const ms = performance.now() - begunAt;
    if (ms >= SLICE.mostMs) return true;
    return (asked >= SLICE.pages || ms >= SLICE.ms) && othersWait();
  };
}

/** Notifies the consumers now and then that there is something for them. */
class ChangeNotice {
  readonly #notify: (isOver: boolean) => void;
  #hasAny = false;
  #notifiedAt = Number.NEGATIVE_INFINITY;

  constructor(notify: (isOver: boolean) => void) {
    this.#notify = notify;
  }

  note(): void {
    this.#hasAny = true;
    if (performance.now() - this.#notifiedAt < NOTIFY_EVERY_MS) return;
    this.#notifiedAt = performance.now();
    this.#notify(false);
  }

  end(): void {
    if (this.#hasAny) this.#notify(true);
  }
}

/**
 * Notices a run that does not get on: its pages bring the same records again and again, or nothing, and would do so for
 * ever. Addresses do not tell, as each may be new. It goes by what the run's row counts, so that no crash hides it.
 *
 * @throws ServiceError to give up on
 */
function checkProgress({ pages, records, seen }: Run): void {
  checkLength(pages);
  if (pages < FIRST_LOOK_PAGES || !Number.isInteger(Math.log2(pages))) return;
  if (records > 2 * seen + SOME_REPEATS) {
    throw endless(
      `The service's pages repeat themselves: ${pages} pages held ${records} records, but only ${seen} different ones.`,
    );
  }
  if (pages >= MANY_PAGES && seen < pages) {
    throw endless(`The service's list does not get on: ${pages} pages held only ${seen} records.`);
  }
}
