import type { ChangeHandler } from '../changes/change-handler.ts';

/**
 * YOURS: `export const onChanges: ChangeHandler = async (batch, { service, db, logger, signal }) => { … };` in place of
 * the line below. It is called at least once for every record that was created, changed or deleted, in order: so make
 * it idempotent, by the records' `id`. If it throws, it is called again. docs/handler.md shows how to use it.
 */
export const onChanges: ChangeHandler | undefined = undefined;
