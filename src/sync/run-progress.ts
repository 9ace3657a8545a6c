import { ServiceError } from '../client/errors.ts';
import { checkLength } from '../client/page-chain.ts';
import type { DeletionStore } from '../store/deletions.ts';
import type { Run, RunKey } from '../store/runs.ts';

/** A run is looked at from so many pages on, and then whenever it has twice as many. */
const FIRST_LOOK_PAGES = 64;

/** Records that may come again for no bad reason: they moved while the run was paging. */
const SOME_REPEATS = 1_000;

/** So many pages with next to nothing on them: two hours' requests, or 1.6 million records that were deleted. */
const MANY_PAGES = 16_384;

/**
 * Notices that a run does not get on: its pages bring the same records again and again, or nothing, and would do so
 * for ever. Addresses do not tell, as each may be new. It goes by what the store knows, so that no crash hides it, and
 * looks seldom: what is wrong is noticed before the run has four times the pages that it has by then.
 *
 * @throws ServiceError to give up on
 */
export async function checkProgress(
  { deletions }: { deletions: Pick<DeletionStore, 'seenCount'> },
  key: RunKey,
  { pages, records }: Pick<Run, 'pages' | 'records'>,
): Promise<void> {
  checkLength(pages);
  if (pages < FIRST_LOOK_PAGES || !Number.isInteger(Math.log2(pages))) return;
  const different = await deletions.seenCount(key);
  if (records > 2 * different + SOME_REPEATS) {
    throw new ServiceError(
      'give_up',
      `The service's pages repeat themselves: ${pages} pages held ${records} records, but only ${different} different ones.`,
    );
  }
  if (pages >= MANY_PAGES && different < pages) {
    throw new ServiceError(
      'give_up',
      `The service's list does not get on: ${pages} pages held only ${different} records.`,
    );
  }
}
