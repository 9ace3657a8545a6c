import { setImmediate as othersTurn } from 'node:timers/promises';
import type { UnseenRecord } from '../store/deletions.ts';
import { idDocument } from '../store/page-items.ts';
import type { Parking } from '../store/parked-batches.ts';
import type { Run } from '../store/runs.ts';
import type { ServiceDocument } from './own-logic.ts';
import { tellAndWrite } from './own-logic-note.ts';
import { type FailuresBefore, NO_FAILURES } from './own-logic-parking.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** How many deletions make a batch; fewer where the records are large. */
const BATCH = 100;

/**
 * How marking ended: with nothing left to mark; with time over, to go on later; or as the run is somebody else's now, or
 * the instance not active any more.
 */
type Marking = 'done' | 'over' | 'lost';

/**
 * Marks every record that this run, which went from the first page to the last, did not see; and tells those as deleted
 * that the own logic may have, and the copy has not. What is marked stays so: the next slice finds only the others.
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
    const { deleted, seqs, ids, damaged } = readDocuments(unseen.records);
    if (damaged.length > 0) {
      context.logger.warn(
        { seqs: damaged },
        'deleted records cannot be read: the own logic is not told of them',
      );
      if (!(await parts.deletions.mark(work.claim, damaged, (parts.now ?? Date.now)()))) return 'lost';
      hasMarked = true;
    }
    if (seqs.length === 0) continue;
    const isMarked = await tellDeleted(parts, work, failures, { deleted, ids }, context, (parking) =>
      parts.deletions.mark(work.claim, seqs, (parts.now ?? Date.now)(), parking),
    );
    if (!isMarked) return 'lost';
    failures = NO_FAILURES;
    hasMarked = true;
  }
  for (;;) {
    const ids = await parts.inDoubt.missing(work.claim, BATCH);
    if (ids.length === 0) return 'done';
    if (context.signal.aborted || (hasMarked && isOver(0))) return 'over';
    const deleted = ids.map((id): ServiceDocument => JSON.parse(idDocument(id)));
    const isTakenBack = await tellDeleted(parts, work, failures, { deleted, ids }, context, (parking) =>
      parts.deletions.takeBack(work.claim, ids, (parts.now ?? Date.now)(), parking),
    );
    if (!isTakenBack) return 'lost';
    failures = NO_FAILURES;
    hasMarked = true;
    await othersTurn();
  }
}

/** Tells records as deleted and writes that. @returns false when the run is lost */
async function tellDeleted(
  parts: SyncParts,
  work: SliceWork,
  before: FailuresBefore,
  { deleted, ids }: { deleted: ServiceDocument[]; ids: string[] },
  context: SliceContext,
  write: (parking: Parking | undefined) => Promise<boolean>,
): Promise<boolean> {
  const batch = { changes: () => ({ deleted }), ids: { comeOrGone: ids, changed: [] } };
  return (await tellAndWrite(parts, work, before, batch, context, write)) ?? false;
}

/**
 * The documents of records, and which records those are, by `seq` and id; apart from them those whose documents are
 * damaged.
 */
function readDocuments(records: readonly UnseenRecord[]) {
  const deleted: ServiceDocument[] = [];
  const seqs: number[] = [];
  const ids: string[] = [];
  const damaged: number[] = [];
  for (const { seq, id, document } of records) {
    try {
      deleted.push(JSON.parse(document));
      seqs.push(seq);
      ids.push(id);
    } catch {
      damaged.push(seq);
    }
  }
  return { deleted, seqs, ids, damaged };
}
