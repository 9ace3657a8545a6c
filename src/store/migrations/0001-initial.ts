import { type Kysely, sql } from 'kysely';

/** The first schema: instances, their tokens, their runs, and the copy. */
export async function up(db: Kysely<unknown>): Promise<void> {
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
    .addColumn('access_token', 'text', (column) => column.notNull())
    .addColumn('refresh_token', 'text', (column) => column.notNull())
    .addColumn('access_expires_at', 'bigint', (column) => column.notNull())
    .addColumn('refresh_issued_at', 'bigint', (column) => column.notNull())
    .addColumn('refresh_due_at', 'bigint', (column) => column.notNull())
    .addColumn('refreshed_at', 'bigint', (column) => column.notNull())
    .addColumn('version', 'integer', (column) => column.notNull())
    .addColumn('rotations', 'integer', (column) => column.notNull())
    .addColumn('refreshes', 'integer', (column) => column.notNull())
    .execute();
  await db.schema.createIndex('tokens_due').on('tokens').column('refresh_due_at').execute();

  await db.schema
    .createTable('runs')
    .addColumn('instance_id', 'text', (column) =>
      column.notNull().references('instances.id').onDelete('cascade'),
    )
    .addColumn('resource', 'text', (column) => column.notNull())
    .addColumn('state', 'text', (column) => column.notNull())
    .addColumn('phase', 'text', (column) => column.notNull())
    .addColumn('generation', 'integer', (column) => column.notNull())
    .addColumn('fence', 'integer', (column) => column.notNull())
    .addColumn('cursor', 'text')
    .addColumn('pages', 'integer', (column) => column.notNull())
    .addColumn('records', 'integer', (column) => column.notNull())
    .addColumn('skipped', 'integer', (column) => column.notNull())
    .addColumn('deleted', 'integer', (column) => column.notNull())
    .addColumn('attempt', 'integer', (column) => column.notNull())
    .addColumn('error', 'text')
    .addColumn('waiting_until', 'bigint')
    .addColumn('waiting_for', 'text')
    .addColumn('started_at', 'bigint')
    .addColumn('finished_at', 'bigint')
    .addPrimaryKeyConstraint('runs_key', ['instance_id', 'resource'])
    .execute();

  await db.schema
    .createTable('records')
    .addColumn('seq', 'integer', (column) => column.primaryKey())
    .addColumn('instance_id', 'text', (column) =>
      column.notNull().references('instances.id').onDelete('cascade'),
    )
    .addColumn('resource', 'text', (column) => column.notNull())
    .addColumn('id', 'text', (column) => column.notNull())
    .addColumn('document', 'text', (column) => column.notNull())
    .addColumn('generation', 'integer', (column) => column.notNull())
    .addColumn('updated_at', 'bigint', (column) => column.notNull())
    .addColumn('deleted_at', 'bigint')
    .addUniqueConstraint('records_key', ['instance_id', 'resource', 'id'])
    .execute();
  await sql`create index records_live on records (instance_id, resource, generation) where deleted_at is null`.execute(
    db,
  );
}
