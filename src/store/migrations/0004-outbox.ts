import { type Kysely, sql } from 'kysely';
import type { StoreDialect } from '../database.ts';

/** What handlers want written at the service, and for each instance when its sender has work. */
export async function up(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  for (const statement of statements(dialect)) await statement.execute(db);
}

const statements = ({ identity }: StoreDialect) => [
  // The writers of an instance lock its row, so that ids are in the order of their commits.
  sql`create table outboxes (
    instance_id text primary key,
    due_at bigint,
    wakes integer not null default 0,
    discarded integer not null default 0)`,
  sql`create index outboxes_due on outboxes (due_at) where due_at is not null`,

  // Without a foreign key: hashes of keys outlive the data of their instance.
  sql`create table outbox (
    id ${identity},
    instance_id text not null,
    key_hash text not null,
    request_hash text not null,
    operation text not null,
    is_repeatable integer not null,
    state text not null,
    was_sent integer not null default 0,
    attempts integer not null default 0,
    not_before bigint not null default 0,
    created_at bigint not null,
    ended_at bigint,
    status integer,
    answer_id text,
    error text,
    "key" text,
    object text,
    path_values text,
    body text)`,
  sql`create unique index outbox_key on outbox (instance_id, key_hash)`,
  sql`create index outbox_open on outbox (instance_id, object, id)
    where state in ('pending', 'sending', 'unknown')`,
  sql`create index outbox_unfinished on outbox (instance_id, state, not_before, id)
    where state not in ('done', 'discarded')`,
  sql`create index outbox_failed on outbox (instance_id, id)
    where error is not null and state not in ('done', 'discarded')`,
  sql`create index outbox_ended on outbox (ended_at) where ended_at is not null and object is not null`,
];
