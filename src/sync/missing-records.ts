import { setImmediate as nextTick } from 'node:timers/promises';
import { WINDOW_MS } from '../contract/limits.ts';
import { ServiceError } from '../service/errors.ts';
import type { UnseenRecord } from '../store/deletions.ts';
import type { ReadPage } from '../store/page-items.ts';
import type { FullEnd, Run } from '../store/runs.ts';
import type { ListRequests } from './list-requests.ts';
import type { SliceContext, SliceWork, SyncParts } from './parts.ts';
import { MOST_CHECK_PAGES } from './schedule.ts';

/** The brake protects lists of at least so many records. */
const BRAKE_FROM = 10;

/** After this time the brake lets go, if every full run since has held the deletions, in milliseconds. */
const HELD_MS = 24 * 60 * 60_000;

/** A full run asks the service for so many missing records one by one. */
const MOST_ASKED = 100;

/** What became of the missing records. `heldRun` is the first of the full runs in a row that held deletions. */
type Settled = Pick<FullEnd, 'missing' | 'held' | 'heldRun'>;

/**
 * Decides about the live records that a full run did not see. They may have moved past it, so a deletion needs proof:
 *
 * | the records | then |
 * | --- | --- |
 * | are more than half of a list of ten or more, or an item has no readable id | held for a person, or for 24 hours |
 * | are missing in a run inside which a check ran out, or whose last check failed | stay |
 * | are missing in a list of one page, as in the run before | deleted: the page is the whole list |
 * | are gone when the service is asked for each of them | deleted |
 * | were not seen by the full run before either, nor by a check since | deleted |
 *
 * @param isOver whether the time slice is over
 * @returns `over` to continue in another slice; `lost` if another worker has the list
 */
export async function settleMissing(
  parts: SyncParts,
  { claim, resource }: SliceWork,
  run: Run,
  requests: ListRequests,
  isOver: () => boolean,
  { signal, logger }: SliceContext,
): Promise<Settled | 'over' | 'lost'> {
  const { deletions, runs } = parts;
  const now = parts.now ?? Date.now;
  const none: Settled = { missing: 0, held: 0, heldRun: null };
  const unseen = await deletions.findUnseen(claim.list, run.id, MOST_ASKED);
  const list = await runs.list(claim.list);
  if (unseen.count === 0 || list === undefined) return none;

  const left = async (): Promise<Settled> => {
    return { ...none, missing: (await deletions.findUnseen(claim.list, run.id, 0)).count };
  };
  /** Marks the records that no run has seen since this one. @returns what is left */
  const mark = async (beforeRun: number): Promise<Settled | 'over' | 'lost'> => {
    const marking = { beforeRun, counter: run.id, claim };
    let hasMarked = false;
    for (let after: number | undefined = 0; after !== undefined; ) {
      // With a record marked, the next slice comes here at once.
      if (signal.aborted || (hasMarked && isOver())) return 'over';
      const marked = await deletions.markPortion(claim.list, marking, after, now());
      if (marked === 'lost') return 'lost';
      hasMarked ||= marked.marked > 0;
      after = marked.next;
      await nextTick();
    }
    return left();
  };

  // An earlier slice of this run may have marked some already.
  const [gone, all] = [unseen.count + run.deleted, list.stored + run.deleted];
  if (run.unreadable > 0 || (all >= BRAKE_FROM && gone * 2 > all)) {
    const { held_run, held_since } = list;
    const isOld = run.unreadable === 0 && held_since !== null && now() - held_since >= HELD_MS;
    if (isOld && held_run !== null) return mark(held_run);
    const before = held_run === null ? 0 : (await deletions.findUnseen(claim.list, held_run, 0)).count;
    const [heldRun, held] = before === 0 ? [run.id, unseen.count] : [held_run, before];
    const facts = { resource: resource.name, held, stored: list.stored, unreadable: run.unreadable };
    logger.warn(facts, 'the run holds its deletions until a person confirms them');
    return { missing: unseen.count, held, heldRun };
  }
  if (run.is_unsure === 1) return { ...none, missing: unseen.count };

  const before = list.full_run === null ? undefined : await runs.find(list.full_run);
  const isSnapshot = run.pages === 1 && run.records > 0 && before?.pages === 1;
  if (!isSnapshot && resource.record !== undefined && run.deleted === 0) {
    const asked = await ask(parts, { claim, route: resource.record }, run, requests, unseen.oldest, signal);
    if (asked === 'lost') return 'lost';
  }
  // A record whose id that run could not read was not missing.
  const isProven = list.full_run !== null && before?.unreadable === 0;
  const beforeRun = isSnapshot ? run.id : isProven ? list.full_run : null;
  return beforeRun === null ? left() : mark(beforeRun);
}

/** Whether a full run begins anew at once: so its missing records are decided soon. */
export function isRepeated(run: Run, { missing, held }: Settled): boolean {
  return missing > held && run.pages <= MOST_CHECK_PAGES && run.is_repeat === 0;
}

/**
 * Asks the service for records one by one, for a window at most. Before and after them it asks for a record that the run
 * has seen: only if both answers bring it, the others are believed.
 */
async function ask(
  parts: SyncParts,
  { claim, route }: Pick<SliceWork, 'claim'> & { route: string },
  run: Run,
  requests: ListRequests,
  missing: readonly UnseenRecord[],
  signal: AbortSignal,
): Promise<'lost' | undefined> {
  const witness = await parts.deletions.findSeen(claim.list, run.id);
  if (witness === undefined) return undefined;
  const now = parts.now ?? Date.now;
  const waitsUntil = performance.now() + WINDOW_MS;
  const isWell = async () => {
    const answer = await requests.record(route, witness, { waitsUntil: waitsUntil + WINDOW_MS });
    return typeof answer === 'object' && 'items' in answer;
  };
  const gone: number[] = [];
  const there: ReadPage = { items: new Map(), rejected: [] };
  try {
    if (!(await isWell())) return undefined;
    for (const { record, externalId } of missing) {
      const answer = await requests.record(route, externalId, { waitsUntil });
      if (answer === 'gone') gone.push(record);
      else if (answer === undefined) continue;
      else if ('isLost' in answer) return 'lost';
      else if ('until' in answer) break;
      else for (const [id, item] of answer.items) there.items.set(id, item);
    }
    if (!(await isWell())) return undefined;
  } catch (error) {
    // The next full run asks again. Without a token the next request ends the slice.
    if (signal.aborted || !(error instanceof ServiceError)) throw error;
    return undefined;
  }
  if (there.items.size > 0 && !(await parts.pages.commitAsked(claim, there, now()))) return 'lost';
  const marking = { beforeRun: run.id, counter: run.id, claim };
  if (gone.length > 0 && !(await parts.deletions.markRecords(claim.list, gone, marking, now())))
    return 'lost';
  return undefined;
}
