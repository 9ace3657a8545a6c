import type { Run } from '../store/runs.ts';
import { tellOwnLogic } from './own-logic-parking.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** How many deletions make a batch. */
const BATCH = 100;

/**
 * Marks every record that this run, which went from the first page to the last, did not see.
 *
 * @returns false when the run is somebody else's now, or the instance is not active any more
 */
export async function markDeletions(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  context: SliceContext,
): Promise<boolean> {
  let tries = run.own_tries;
  for (let after: number | null = 0; after !== null; ) {
    const unseen = await parts.deletions.unseen(work.claim, after, BATCH);
    after = unseen.after;
    if (unseen.records.length === 0) continue;
    const deleted = unseen.records.map((record) => JSON.parse(record.document));
    const parking = await tellOwnLogic(parts, work, tries, { deleted }, context);
    tries = 0;
    const seqs = unseen.records.map((record) => record.seq);
    if (!(await parts.deletions.mark(work.claim, seqs, (parts.now ?? Date.now)(), parking))) return false;
  }
  return true;
}
