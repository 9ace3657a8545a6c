import { type Kysely, sql } from 'kysely';
import type { StoreDialect } from '../database.ts';

/** The schema, edited in place until the first version is out. Moments are milliseconds since 1970. */
export async function up(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  await addInstances(db);
  await addBrowsers(db);
  await addLists(db, dialect);
  await addRecords(db, dialect);
  await addChanges(db);
  await addActions(db, dialect);
  await dialect.search.create(db);
}

async function addInstances(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('instances')
    .addColumn('id', 'text', (column) => column.primaryKey())
    .addColumn('company_id', 'text', (column) => column.unique())
    .addColumn('name', 'text', (column) => column.notNull())
    .addColumn('status', 'text', (column) => column.notNull())
    .addColumn('error_kind', 'text')
    .addColumn('error_detail', 'text')
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
    .addColumn('return_to', 'text')
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

/** A list that was removed keeps its row until its records are gone; a new install makes another one. */
async function addLists(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  await db.schema
    .createTable('lists')
    .addColumn('id', dialect.identity.type, dialect.identity.build)
    .addColumn('instance_id', 'text', (column) => column.notNull().references('instances.id'))
    .addColumn('resource', 'text', (column) => column.notNull())
    .addColumn('change_seq', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('stored', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('behind_since', 'bigint')
    .addColumn('failing_since', 'bigint')
    .addColumn('failing_told_at', 'bigint')
    .addColumn('paused_at', 'bigint')
    .addColumn('interval_minutes', 'bigint')
    .addColumn('removed_at', 'bigint')
    .execute();
  await db.schema
    .createIndex('lists_key')
    .unique()
    .on('lists')
    .columns(['instance_id', 'resource'])
    .where(sql.ref('removed_at'), 'is', null)
    .execute();

  await db.schema
    .createTable('runs')
    .addColumn('id', dialect.identity.type, dialect.identity.build)
    .addColumn('list', 'bigint', (column) => column.notNull().references('lists.id'))
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('fence', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('cursor', 'text')
    .addColumn('pages', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('records', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('seen', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('created', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('changed', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('deleted', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('rejected', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('unreadable', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('requests', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('refused', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('held', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('attempt', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('wait_until', 'bigint')
    .addColumn('waiting_for', 'text')
    .addColumn('stuck_since', 'bigint')
    .addColumn('error_kind', 'text')
    .addColumn('error_detail', 'text')
    .addColumn('started_at', 'bigint', (column) => column.notNull())
    .addColumn('finished_at', 'bigint')
    .execute();
  await db.schema
    .createIndex('runs_open')
    .unique()
    .on('runs')
    .column('list')
    .where(sql.ref('finished_at'), 'is', null)
    .execute();
  await db.schema.createIndex('runs_list').on('runs').columns(['list', 'id']).execute();
}

/** The document is the last column, so that reading the others does not walk over it. */
async function addRecords(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  await db.schema
    .createTable('records')
    .addColumn('id', dialect.identity.type, dialect.identity.build)
    .addColumn('list', 'bigint', (column) => column.notNull())
    .addColumn('external_id', 'text', (column) => column.notNull())
    .addColumn('hash', 'text')
    .addColumn('change_seq', 'bigint', (column) => column.notNull())
    .addColumn('created_seq', 'bigint', (column) => column.notNull())
    .addColumn('deleted_at', 'bigint')
    .addColumn('erased_at', 'bigint')
    .addColumn('document', 'text')
    .execute();
  await db.schema
    .createIndex('records_key')
    .unique()
    .on('records')
    .columns(['list', 'external_id'])
    .execute();
  await db.schema.createIndex('records_changes').on('records').columns(['list', 'change_seq']).execute();
  // What the retention looks for.
  await db.schema
    .createIndex('records_deleted')
    .on('records')
    .column('deleted_at')
    .where(sql<boolean>`deleted_at is not null and document is not null`)
    .execute();
  // Live records alone, and apart from them: a record that has not changed costs no write to its own row.
  await db.schema
    .createTable('seen')
    .addColumn('list', 'bigint', (column) => column.notNull())
    .addColumn('record', 'bigint', (column) => column.notNull())
    .addColumn('run', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('seen_key', ['list', 'record'])
    .modifyEnd(dialect.narrowTable)
    .execute();

  await db.schema
    .createTable('rejected_records')
    .addColumn('list', 'bigint', (column) => column.notNull())
    .addColumn('hash', 'text', (column) => column.notNull())
    .addColumn('reason', 'text', (column) => column.notNull())
    .addColumn('excerpt', 'text', (column) => column.notNull())
    .addColumn('length', 'integer', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addColumn('run', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('rejected_records_key', ['list', 'hash'])
    .execute();
}

async function addChanges(db: Kysely<unknown>): Promise<void> {
  await db.schema
    .createTable('consumers')
    .addColumn('list', 'bigint', (column) => column.notNull())
    .addColumn('consumer', 'text', (column) => column.notNull())
    .addColumn('cursor', 'bigint', (column) => column.notNull().defaultTo(0))
    .addColumn('fence', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('attempts', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('tried_seq', 'bigint')
    .addColumn('not_before', 'bigint')
    .addColumn('failed_in_row', 'integer', (column) => column.notNull().defaultTo(0))
    .addColumn('error_kind', 'text')
    .addColumn('error_detail', 'text')
    .addPrimaryKeyConstraint('consumers_key', ['list', 'consumer'])
    .execute();

  await db.schema
    .createTable('dead_letters')
    .addColumn('list', 'bigint', (column) => column.notNull())
    .addColumn('consumer', 'text', (column) => column.notNull())
    .addColumn('external_id', 'text', (column) => column.notNull())
    .addColumn('error_kind', 'text', (column) => column.notNull())
    .addColumn('error_detail', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .addPrimaryKeyConstraint('dead_letters_key', ['list', 'consumer', 'external_id'])
    .execute();
}

/** Without a foreign key: a row outlives the data of its instance. */
async function addActions(db: Kysely<unknown>, dialect: StoreDialect): Promise<void> {
  await db.schema
    .createTable('actions')
    .addColumn('id', dialect.identity.type, dialect.identity.build)
    .addColumn('instance_id', 'text', (column) => column.notNull())
    .addColumn('resource', 'text')
    .addColumn('record', 'text')
    .addColumn('action', 'text', (column) => column.notNull())
    .addColumn('by', 'text', (column) => column.notNull())
    .addColumn('at', 'bigint', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('actions_instance').on('actions').columns(['instance_id', 'id']).execute();
}
