import { type Kysely, sql } from 'kysely';

/**
 * The schema, edited in place until the first version is out. Moments are milliseconds since 1970.
 *
 * `runs.list` is short for instance and resource wherever there are many rows, and never given twice, so that no list
 * takes the records of one before it for its own. The document is a record's last column, so that reading the others does
 * not walk over it.
 */
export async function up(db: Kysely<unknown>): Promise<void> {
  await addInstances(db);
  await addBrowsers(db);
  await addRuns(db);
  await addRecords(db);
  await addSearch(db);
}

async function addInstances(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('instances')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('company_id', 'text', (column) => column.unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('notice', 'text')
    .addColumn('installed_at', 'bigint', (column) => column.notNull())
    .execute();

  await db.schema
    .createTable('tokens')
    .addColumn('instance_id', 'text', (column) =>
      column.primaryKey().references('instances.id').onDelete('cascade'),
    )
    .addColumn('access_token', 'text')
    .addColumn('refresh_token', 'text')
    .addColumn('access_expires_at', 'bigint', (column) => column.notNull())
    .addColumn('refresh_issued_at', 'bigint', (column) => column.notNull())
    .addColumn('refresh_due_at', 'bigint', (column) => column.notNull())
    .addColumn('refreshed_at', 'bigint', (column) => column.notNull())
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('rotations', 'integer', (column) => column.notNull())
    .addColumn('refreshes', 'integer', (column) => column.notNull())
    .addColumn('lease_owner', 'text')
    .addColumn('lease_until', 'bigint')
    .addColumn('refresh_not_before', 'bigint')
    .addColumn('refresh_failures', 'integer', (column) => column.notNull().defaultTo(0))
    .execute();
  await db.schema.createIndex('tokens_due').on('tokens').column('refresh_due_at').execute();
}

async function addBrowsers(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('browsers')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .execute();

  await db.schema
    .createTable('sessions')
    .addColumn('sid_hash', 'text', (column) => column.primaryKey())
    .addColumn('browser_id', 'text', (column) =>
      column.notNull().references('browsers.id').onDelete('cascade'),
    )
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('sessions_browser').on('sessions').column('browser_id').execute();
  await db.schema.createIndex('sessions_expiry').on('sessions').column('expires_at').execute();

  await db.schema
    .createTable('access')
    .addColumn('browser_id', 'text', (column) =>
      column.notNull().references('browsers.id').onDelete('cascade'),
    )
    .addColumn('instance_id', 'text', (column) =>
      column.notNull().references('instances.id').onDelete('cascade'),
    )
    .addColumn('granted_at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('access_key', ['browser_id', 'instance_id'])
    .execute();
  await db.schema.createIndex('access_instance').on('access').column('instance_id').execute();

  await db.schema
    .createTable('installs')
    .addColumn('state_hash', 'text', (column) => column.primaryKey())
    .addColumn('nonce_hash', 'text', (column) => column.notNull().unique())
    .addColumn('browser_id', 'text', (column) =>
      column.notNull().references('browsers.id').onDelete('cascade'),
    )
    .addColumn('expires_at', 'bigint', (column) => column.notNull())
    .addColumn('code_hash', 'text')
    .addColumn('claimed_at', 'bigint')
    .addColumn('instance_id', 'text', (column) => column.references('instances.id').onDelete('cascade'))
    .addColumn('error_kind', 'text')
    .addColumn('error_detail', 'text')
    .execute();
  await db.schema.createIndex('installs_browser').on('installs').column('browser_id').execute();
  await db.schema.createIndex('installs_expiry').on('installs').column('expires_at').execute();

  await db.schema
    .createTable('settings')
    .addColumn('name', 'text', (column) => column.primaryKey())
    .addColumn('value', 'text', (column) => column.notNull())
    .execute();
}

async function addRuns(db: Kysely<unknown>): Promise<void> {
  await sql`create table runs (
    list integer primary key autoincrement,
    instance_id text not null references instances (id) on delete cascade,
    resource text not null,
    state text not null,
    phase text not null,
    fence integer not null,
    cursor text,
    pages integer not null,
    records integer not null,
    skipped integer not null,
    deleted integer not null,
    stored integer not null default 0,
    attempt integer not null,
    own_tries integer not null default 0,
    own_since bigint,
    waits integer not null default 0,
    stuck_since bigint,
    error text,
    waiting_until bigint,
    waiting_for text,
    started_at bigint,
    finished_at bigint,
    behind_since bigint,
    unique (instance_id, resource))`.execute(db);
  await sql`create index runs_state on runs (state)`.execute(db);
  await sql`create table seen_ranges (
    list integer not null,
    first integer not null,
    last integer not null,
    primary key (list, first)) without rowid`.execute(db);
  await sql`create table removals (instance_id text primary key) without rowid`.execute(db);
}

async function addRecords(db: Kysely<unknown>): Promise<void> {
  await sql`create table records (
    seq integer primary key,
    list integer not null,
    id text not null,
    hash text not null,
    updated_at bigint not null,
    deleted_at bigint,
    document text not null)`.execute(db);
  await sql`create unique index records_key on records (list, id)`.execute(db);
  await sql`create index records_live on records (list) where deleted_at is null`.execute(db);
  await sql`create table parked_batches (
    place integer primary key autoincrement,
    list integer not null,
    seqs text not null,
    count integer not null,
    tries integer not null,
    error text not null,
    parked_at bigint not null,
    tried_at bigint not null)`.execute(db);
  await sql`create index parked_batches_due on parked_batches (list, tried_at)`.execute(db);
  await sql`create table in_doubt (
    list integer not null,
    id text not null,
    fence integer not null,
    is_known integer not null,
    primary key (list, id, fence)) without rowid`.execute(db);
  await sql`create table quarantine (
    list integer not null,
    hash text not null,
    reason text not null,
    excerpt text not null,
    length integer not null,
    first_seen_at bigint not null,
    seen_at bigint not null,
    primary key (list, hash)) without rowid`.execute(db);
}

/** The index keeps no texts of its own; its rows go by `records.seq`. Records that it does not know stand in the queue. */
async function addSearch(db: Kysely<unknown>): Promise<void> {
  // The words come folded and told apart already (search-words.ts): the tokenizer only splits at spaces.
  await sql`create virtual table search using fts5(
    words, content = '', contentless_delete = 1, tokenize = 'ascii')`.execute(db);
  // Its parts are merged little by little by whoever writes it (search-index.ts), never many at once.
  await sql`insert into search (search, rank) values ('automerge', 0), ('crisismerge', 1000)`.execute(db);
  await sql`create table search_queue (
    place integer primary key,
    list integer not null,
    seqs text not null,
    count integer not null)`.execute(db);
  await sql`create index search_queue_list on search_queue (list, count)`.execute(db);
}
