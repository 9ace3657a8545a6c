import type { Run } from '../store/runs.ts';
import { callOwnLogic } from './own-logic-call.ts';
import type { SliceWork } from './page.ts';
import type { SliceContext, SyncParts } from './slice-parts.ts';

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
  const { instance, resource, claim } = work;
  for (;;) {
    const unseen = await parts.deletions.unseen(run, BATCH);
    if (unseen.length === 0) return true;
    const deleted = unseen.map((record) => JSON.parse(record.document));
    await callOwnLogic(parts, { instance, resource: resource.name }, { deleted }, context);
    const ids = unseen.map((record) => record.id);
    if (!(await parts.deletions.mark(claim, ids, (parts.now ?? Date.now)()))) return false;
  }
}
