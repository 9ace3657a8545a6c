import type { BatchIds } from '../store/in-doubt.ts';
import type { Parking } from '../store/parked-batches.ts';
import type { BatchChanges } from './own-logic-call.ts';
import { OwnLogicError } from './own-logic-failure.ts';
import { watchForLoss } from './own-logic-lost.ts';
import { type FailuresBefore, parkUntold, tellOwnLogic } from './own-logic-parking.ts';
import { isShutdown } from './process-failure.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** A batch as the own logic gets it, and by the ids that the copy knows its records by. */
interface NotedBatch {
  /** Made when they are told. */
  changes: () => BatchChanges;
  ids: BatchIds;
}

/**
 * Tells a batch and writes it, with a note before: whatever comes in between, its records stay in doubt until what was
 * told of them is written. Where there is no own logic, or nothing to tell, it is only written. A try counts from its
 * begin: one whose process dies, or loses the run, is used up like one that fails; one that a shutdown or a pause has cut
 * off from the store is not.
 *
 * @param before what became of the batch in other slices
 * @param write writes what was told, or parks it; answers false or undefined when the run is lost
 * @returns what that answers; undefined when the run was lost before: nothing was told then
 * @throws ServiceError when the batch has to be tried again
 */
export async function tellAndWrite<Written>(
  parts: SyncParts,
  work: SliceWork,
  before: FailuresBefore,
  { changes, ids }: NotedBatch,
  context: SliceContext,
  write: (parking: Parking | undefined) => Promise<Written>,
): Promise<Written | undefined> {
  const isTold = parts.ownLogic !== undefined && ids.comeOrGone.length + ids.changed.length > 0;
  if (!isTold) return write(undefined);
  const untold = await parkUntold(parts, work, before, context);
  if (untold !== undefined) return write(untold);
  if (!(await parts.inDoubt.note(work.claim, ids))) return undefined;
  const warnOfLoss = watchForLoss(context.logger);
  let written: Written | undefined;
  let isUsedUp = false;
  try {
    written = await write(await tellOwnLogic(parts, work, before, changes(), context));
    return written;
  } catch (error) {
    isUsedUp = error instanceof OwnLogicError && !isShutdown(context.signal);
    throw error;
  } finally {
    if (!written) {
      if (await parts.inDoubt.noteIfLost(work.claim, ids)) warnOfLoss();
      else if (!isUsedUp) await parts.runs.setOwnTries(work.claim, before.own_tries);
    }
  }
}
