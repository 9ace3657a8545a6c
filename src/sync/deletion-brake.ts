import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Run } from '../store/runs.ts';
import type { SliceContext, SliceWork, SyncParts } from './parts.ts';

/** A run over a list of so many records holds its deletions if they are more than half of it. */
const BRAKE_FROM = 50;

/**
 * Marks every record that this run, which went from the first page to the last, did not see. Where that would be more
 * than half of the list, or the run met a record whose id it could not read, it holds them: then only what the whole
 * run before has not seen either is marked, if that one held, too.
 *
 * @param isOver whether others have their turn
 * @returns how many deletions the run holds; `over` to go on later; `lost` when the run is not ours any more
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
  // What the slice before has marked already counts, too.
  const [gone, all] = [unseen + run.deleted, stored + run.deleted];
  const holds = run.unreadable > 0 || (all >= BRAKE_FROM && gone * 2 > all);
  const before = holds ? await runs.lastFinished(claim.list, run.id) : undefined;
  if (holds && !before?.held) {
    logger.warn(
      { resource: resource.name, held: unseen, stored, unreadable: run.unreadable },
      'the run would delete too much: it holds its deletions until the next one agrees or a person confirms them',
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
    await othersTurn();
  }
  return before === undefined ? 0 : deletions.countUnseen(claim.list, run.id);
}
