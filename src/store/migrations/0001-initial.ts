import { type Kysely, sql } from 'kysely';
import type { StoreDialect } from '../database.ts';

/** The first schema, which nobody changes any more. Moments are milliseconds since 1970. */
export async function up(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  for (const statement of statements(dialect)) await statement.execute(db);
  await dialect.search.create(db);
}

const statements = ({ identity, narrowTable }: StoreDialect) => [
  sql`create table instances (
    id text primary key,
    company_id text unique,
    name text not null,
    status text not null,
    error_kind text,
    error_detail text,
    installed_at bigint not null)`,

  sql`create table tokens (
    instance_id text primary key references instances (id) on delete cascade,
    access_token text,
    refresh_token text,
    access_expires_at bigint not null,
    refresh_issued_at bigint not null,
    refresh_due_at bigint not null,
    refreshed_at bigint not null,
    version integer not null,
    rotations integer not null,
    refreshes integer not null,
    lease_owner text,
    lease_until bigint,
    refresh_not_before bigint,
    refresh_failures integer not null default 0)`,
  sql`create index tokens_due on tokens (refresh_due_at)`,

  sql`create table browsers (id text primary key)`,

  sql`create table sessions (
    sid_hash text primary key,
    browser_id text not null references browsers (id) on delete cascade,
    expires_at bigint not null)`,
  sql`create index sessions_browser on sessions (browser_id)`,
  sql`create index sessions_expiry on sessions (expires_at)`,

  sql`create table access (
    browser_id text not null references browsers (id) on delete cascade,
    instance_id text not null references instances (id) on delete cascade,
    granted_at bigint not null,
    primary key (browser_id, instance_id))`,
  sql`create index access_instance on access (instance_id)`,

  sql`create table installs (
    state_hash text primary key,
    nonce_hash text not null unique,
    browser_id text not null references browsers (id) on delete cascade,
    return_to text,
    expires_at bigint not null,
    code_hash text,
    claimed_at bigint,
    instance_id text references instances (id) on delete cascade,
    error_kind text,
    error_detail text)`,
  sql`create index installs_browser on installs (browser_id)`,
  sql`create index installs_expiry on installs (expires_at)`,

  sql`create table settings (name text primary key, value text not null)`,

  // A removed list keeps its row until its records are gone. A new install makes another list.
  sql`create table lists (
    id ${identity},
    instance_id text not null references instances (id),
    resource text not null,
    change_seq bigint not null default 0,
    stored integer not null default 0,
    behind_since bigint,
    failing_since bigint,
    failing_told_at bigint,
    paused_at bigint,
    interval_minutes bigint,
    removed_at bigint)`,
  sql`create unique index lists_key on lists (instance_id, resource) where removed_at is null`,

  sql`create table runs (
    id ${identity},
    list bigint not null references lists (id),
    state text not null,
    fence integer not null default 0,
    cursor text,
    pages integer not null default 0,
    records integer not null default 0,
    seen integer not null default 0,
    created integer not null default 0,
    changed integer not null default 0,
    deleted integer not null default 0,
    rejected integer not null default 0,
    unreadable integer not null default 0,
    requests integer not null default 0,
    refused integer not null default 0,
    held integer not null default 0,
    attempt integer not null default 0,
    wait_until bigint,
    waiting_for text,
    stuck_since bigint,
    error_kind text,
    error_detail text,
    started_at bigint not null,
    finished_at bigint)`,
  sql`create unique index runs_open on runs (list) where finished_at is null`,
  sql`create index runs_list on runs (list, id)`,

  // The document is the last column, so that SQLite reads the others without it.
  sql`create table records (
    id ${identity},
    list bigint not null,
    external_id text not null,
    hash text,
    change_seq bigint not null,
    created_seq bigint not null,
    deleted_at bigint,
    erased_at bigint,
    document text)`,
  sql`create unique index records_key on records (list, external_id)`,
  sql`create index records_changes on records (list, change_seq)`,
  sql`create index records_deleted on records (deleted_at)
    where deleted_at is not null and document is not null`,

  // A table of its own for live records: an unchanged record costs no write to its large row.
  sql`create table seen (
    list bigint not null,
    record bigint not null,
    run bigint not null,
    primary key (list, record)) ${narrowTable}`,

  sql`create table rejected_records (
    list bigint not null,
    hash text not null,
    reason text not null,
    excerpt text not null,
    length integer not null,
    at bigint not null,
    run bigint not null,
    primary key (list, hash))`,

  sql`create table consumers (
    list bigint not null,
    consumer text not null,
    cursor bigint not null default 0,
    fence integer not null default 0,
    attempts integer not null default 0,
    tried_seq bigint,
    not_before bigint,
    failed_in_row integer not null default 0,
    error_kind text,
    error_detail text,
    primary key (list, consumer))`,

  sql`create table dead_letters (
    list bigint not null,
    consumer text not null,
    external_id text not null,
    error_kind text not null,
    error_detail text not null,
    at bigint not null,
    primary key (list, consumer, external_id))`,

  // Without a foreign key: a row outlives the data of its instance.
  sql`create table actions (
    id ${identity},
    instance_id text not null,
    resource text,
    record text,
    action text not null,
    "by" text not null,
    at bigint not null)`,
  sql`create index actions_instance on actions (instance_id, id)`,
];
