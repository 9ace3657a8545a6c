import { type Kysely, sql } from 'kysely';

/** Checks of a list's first pages, and deletions that need proof. `lists.fence` takes the place of `runs.fence`. */
export async function up(db: Kysely<unknown>): Promise<void> {
  for (const statement of STATEMENTS) await statement.execute(db);
}

const add = (table: string, column: string) =>
  sql`alter table ${sql.table(table)} add column ${sql.raw(column)}`;

const STATEMENTS = [
  ...[
    'fence integer not null default 0',
    'commits integer not null default 0',
    'due_at bigint',
    'full_due_at bigint not null default 0',
    'check_due_at bigint',
    'checked_at bigint',
    'full_at bigint',
    'full_run bigint',
    'check_every integer not null default 1',
    'check_after integer not null default 0',
    'caught integer not null default 0',
    'ran_out integer not null default 0',
    'missing integer not null default 0',
    'held integer not null default 0',
    'held_run bigint',
    'held_since bigint',
  ].map((column) => add('lists', column)),
  sql`create index lists_due on lists (due_at) where due_at is not null`,

  ...[
    "kind text not null default 'full'",
    'behind integer',
    'missing integer not null default 0',
    'is_unsure integer not null default 0',
    'is_repeat integer not null default 0',
  ].map((column) => add('runs', column)),

  // The lists of today: their last whole run is the first of two, and all are due.
  sql`update lists set full_run =
    (select max(id) from runs where list = lists.id and state = 'finished')`,
  sql`update lists set
    full_at = (select finished_at from runs where id = lists.full_run),
    held = coalesce((select held from runs where id = lists.full_run), 0)`,
  sql`update lists set checked_at = full_at, missing = held,
    held_run = case when held > 0 then full_run end,
    held_since = case when held > 0 then full_at end`,
  sql`update lists set due_at = 0 where removed_at is null and paused_at is null
    and instance_id in (select id from instances where status = 'active')`,
];
