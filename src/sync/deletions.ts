import { setImmediate as othersTurn } from 'node:timers/promises';
import type { UnseenRecord } from '../store/deletions.ts';
import type { Run } from '../store/runs.ts';
import type { ServiceDocument } from './own-logic.ts';
import { type FailuresBefore, NO_FAILURES, tellOwnLogic } from './own-logic-parking.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** How many deletions make a batch; fewer where the records are large. */
const BATCH = 100;

/**
 * How marking ended: with nothing left to mark; with time over, to go on later; or as the run is somebody else's now, or
 * the instance not active any more.
 */
type Marking = 'done' | 'over' | 'lost';

/**
 * Marks every record that this run, which went from the first page to the last, did not see. What is marked stays so:
 * the next slice finds only the others.
 *
 * @param isOver whether others have their turn
 */
export async function markDeletions(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  isOver: (asked: number) => boolean,
  context: SliceContext,
): Promise<Marking> {
  let hasMarked = false;
  let failures: FailuresBefore = run;
  for (let after: number | null = 0; after !== null; ) {
    // A batch may be large, and nothing of it waits for anybody.
    await othersTurn();
    if (context.signal.aborted) return 'over';
    // Each slice looks from the beginning for what is left: it is not to end before it has found some.
    if (hasMarked && isOver(0)) return 'over';
    const unseen = await parts.deletions.unseen(work.claim, after, BATCH);
    after = unseen.after;
    const { deleted, seqs, damaged } = readDocuments(unseen.records);
    if (damaged.length > 0) {
      context.logger.warn(
        { seqs: damaged },
        'deleted records cannot be read: the own logic is not told of them',
      );
      if (!(await parts.deletions.mark(work.claim, damaged, (parts.now ?? Date.now)()))) return 'lost';
      hasMarked = true;
    }
    if (seqs.length === 0) continue;
    const parking = await tellOwnLogic(parts, work, failures, { deleted }, context);
    failures = NO_FAILURES;
    if (!(await parts.deletions.mark(work.claim, seqs, (parts.now ?? Date.now)(), parking))) return 'lost';
    hasMarked = true;
  }
  return 'done';
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
