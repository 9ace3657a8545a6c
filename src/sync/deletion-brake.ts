import { setImmediate as nextTick } from 'node:timers/promises';
import type { Run } from '../store/runs.ts';
import type { SliceContext, SliceWork, SyncParts } from './parts.ts';

/** The brake protects lists of at least so many records. */
const BRAKE_FROM = 50;

/**
 * Marks every record as deleted that this whole run did not see. The run holds its deletions instead if they are more
 * than half of the list, or if it met a record with an unreadable id. If the whole run before held, too, the records
 * that neither saw are marked.
 *
 * @param isOver whether the time slice is over
 * @returns the number of held deletions; `over` to continue in another slice; `lost` if another worker has the run
 */
export async function markDeletions(
  parts: SyncParts,
  { claim, instance, resource }: SliceWork,
  run: Run,
  isOver: () => boolean,
  { signal, logger }: SliceContext,
): Promise<number | 'over' | 'lost'> {
  const { deletions, runs } = parts;
  const unseen = await deletions.countUnseen(claim.list, run.id);
  if (unseen === 0) return 0;
  const stored = (await runs.lists(instance.id)).find(({ id }) => id === claim.list)?.stored ?? 0;
  // An earlier slice of this run may have marked some already.
  const [gone, all] = [unseen + run.deleted, stored + run.deleted];
  const holds = run.unreadable > 0 || (all >= BRAKE_FROM && gone * 2 > all);
  const before = holds ? await runs.lastFinished(claim.list, run.id) : undefined;
  if (holds && !before?.held) {
    logger.warn(
      { resource: resource.name, held: unseen, stored, unreadable: run.unreadable },
      'the run holds its deletions until the next run agrees or a person confirms them',
    );
    return unseen;
  }
  const beforeRun = before?.id ?? run.id;
  for (let after: number | undefined = 0; after !== undefined; ) {
    if (signal.aborted || (after > 0 && isOver())) return 'over';
    const portion = { beforeRun, counter: run.id, claim };
    const marked = await deletions.markPortion(claim.list, portion, after, (parts.now ?? Date.now)());
    if (marked === 'lost') return 'lost';
    after = marked.next;
    await nextTick();
  }
  return before === undefined ? 0 : deletions.countUnseen(claim.list, run.id);
}
