import type { ChangeHandler } from '../changes/change-handler.ts';

/**
 * YOURS. The app calls it at least once for every record that was created, changed or deleted, in order. So make it
 * idempotent, by `id`. If it throws, the app calls it again. See docs/handler.md.
 *
 * This example counts the changes in the log. To have no handler, export undefined.
 */
export const onChanges: ChangeHandler | undefined = async ({ changes }, { logger }) => {
  const counts = { created: 0, changed: 0, deleted: 0 };
  for (const { change } of changes) counts[change]++;
  // Here: write `document` to your system, or delete it there when `change` is 'deleted'.
  logger.info(counts, 'the handler got changes');
};
