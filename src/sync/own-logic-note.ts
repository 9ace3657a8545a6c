import type { BatchIds } from '../store/in-doubt.ts';
import type { Parking } from '../store/parked-batches.ts';
import type { BatchChanges } from './own-logic-call.ts';
import { type FailuresBefore, tellOwnLogic } from './own-logic-parking.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** A batch as the own logic gets it, and by the ids that the copy knows its records by. */
interface NotedBatch {
  /** Made when they are told. */
  changes: () => BatchChanges;
  ids: BatchIds;
}

/**
 * Tells a batch and writes it, with a note before: whatever comes in between, its records stay in doubt until what was
 * told of them is written. Where there is no own logic, or nothing to tell, it is only written.
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
  if (!(await parts.inDoubt.note(work.claim, ids))) return undefined;
  let written: Written | undefined;
  try {
    written = await write(await tellOwnLogic(parts, work, before, changes(), context));
    return written;
  } finally {
    if (!written) await parts.inDoubt.noteIfLost(work.claim, ids);
  }
}
