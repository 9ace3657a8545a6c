/**
 * YOURS: the tables of your handler, as Kysely types them, such as `orders: { id: string; total: number }`. A file
 * `migrations/0001-orders.ts` that exports `up(db)` creates them. See docs/handler.md.
 */
// biome-ignore lint/suspicious/noEmptyInterface: a fork adds its tables here.
export interface HandlerTables {}
