import { callOwnLogic } from './own-logic-call.ts';
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
  context: SliceContext,
): Promise<boolean> {
  const { instance, resource, claim } = work;
  for (let after: number | null = 0; after !== null; ) {
    const unseen = await parts.deletions.unseen(claim, after, BATCH);
    after = unseen.after;
    if (unseen.records.length === 0) continue;
    const deleted = unseen.records.map((record) => JSON.parse(record.document));
    await callOwnLogic(parts, { instance, resource: resource.name }, { deleted }, context);
    const seqs = unseen.records.map((record) => record.seq);
    if (!(await parts.deletions.mark(claim, seqs, (parts.now ?? Date.now)()))) return false;
  }
  return true;
}
