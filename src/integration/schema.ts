/**
 * YOURS: the tables of your handler, as Kysely types them: `orders: { id: string; total: number }`. Make them by
 * migrations in `migrations/`: a file `0001-orders.ts` that exports `up(db)`.
 */
// biome-ignore lint/suspicious/noEmptyInterface: a fork adds its tables here.
export interface HandlerTables {}
