import { type Kysely, sql } from 'kysely';

/** Browsers, their sessions, what they see, and the installs that they began; tokens with lease and backoff. */
export async function up(db: Kysely<unknown>): Promise<void> {
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

  await db.schema.dropTable('tokens').execute();
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

  await db.schema.dropTable('key_checks').execute();
  await sql`alter table instances drop column access_generation`.execute(db);
}
