import { setImmediate as othersTurn } from 'node:timers/promises';
import type { UnseenRecord } from '../store/deletions.ts';
import type { Run } from '../store/runs.ts';
import type { ServiceDocument } from './own-logic.ts';
import { type FailuresBefore, NO_FAILURES, tellOwnLogic } from './own-logic-parking.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** How many deletions make a batch; fewer where the records are large. */
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
  let failures: FailuresBefore = run;
  for (let after: number | null = 0; after !== null; ) {
    // A batch may be large, and nothing of it waits for anybody.
    await othersTurn();
    const unseen = await parts.deletions.unseen(work.claim, after, BATCH);
    after = unseen.after;
    const { deleted, seqs, damaged } = readDocuments(unseen.records);
    if (damaged.length > 0) {
      context.logger.warn(
        { seqs: damaged },
        'deleted records cannot be read: the own logic is not told of them',
      );
      if (!(await parts.deletions.mark(work.claim, damaged, (parts.now ?? Date.now)()))) return false;
    }
    if (seqs.length === 0) continue;
    const parking = await tellOwnLogic(parts, work, failures, { deleted }, context);
    failures = NO_FAILURES;
    if (!(await parts.deletions.mark(work.claim, seqs, (parts.now ?? Date.now)(), parking))) return false;
  }
  return true;
}

/** The documents of records, and which records those are; apart from them those whose documents are damaged. */
function readDocuments(records: readonly UnseenRecord[]) {
  const deleted: ServiceDocument[] = [];
  const seqs: number[] = [];
  const damaged: number[] = [];
  for (const { seq, document } of records) {
    try {
      deleted.push(JSON.parse(document));
      seqs.push(seq);
    } catch {
      damaged.push(seq);
    }
  }
  return { deleted, seqs, damaged };
}
