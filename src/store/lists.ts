import type { Kysely, Transaction } from 'kysely';
import type { Database } from './database.ts';
import type { Schema } from './schema.ts';

/** Names a list: one instance, one resource. */
export interface ListKey {
  instanceId: string;
  resource: string;
}

/** Finds a list, unless its copy is being removed. */
export function findList(db: Kysely<Schema>, { instanceId, resource }: ListKey) {
  return db
    .selectFrom('lists')
    .selectAll()
    .where((eb) => eb.and({ instance_id: instanceId, resource }))
    .where('removed_at', 'is', null)
    .executeTakeFirst();
}

/** Finds a list, and makes it if there is none. @returns its id */
export async function ensureList(tx: Transaction<Schema>, key: ListKey): Promise<number> {
  const known = await findList(tx, key);
  if (known !== undefined) return known.id;
  await tx
    .insertInto('lists')
    .values({ instance_id: key.instanceId, resource: key.resource })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await findList(tx, key))?.id ?? 0;
}

/** Locks a list's row, so that one transaction at a time writes its records. Undefined for a removed list. */
export async function lockList(db: Database, tx: Kysely<Schema>, list: number) {
  const row = await tx
    .selectFrom('lists')
    .selectAll()
    .where('id', '=', list)
    .$if(db.dialect.name === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst();
  return row?.removed_at === null ? row : undefined;
}

/**
 * The next number of a list's change feed: at least the last one plus one, and the clock in microseconds. So no number
 * comes twice, even if the database was restored or the company installed again.
 */
export function nextSeq(last: number): number {
  return Math.max(last + 1, Date.now() * 1_000);
}

/**
 * Raises the fences of runs and consumers, of an instance or of one list: workers that hold them cannot write any more.
 *
 * @param of.endedAt when the open runs end for good (milliseconds since 1970); without it they stay open
 */
export async function raiseFences(
  db: Database,
  tx: Kysely<Schema>,
  { instanceId, resource, endedAt }: Pick<ListKey, 'instanceId'> & Partial<ListKey> & { endedAt?: number },
): Promise<void> {
  const lists = tx
    .selectFrom('lists')
    .select('id')
    .where((eb) => eb.and({ instance_id: instanceId, ...(resource !== undefined && { resource }) }));
  // Pages lock their list, too: a commit that has begun comes to its end first.
  await lists
    .orderBy('id')
    .$if(db.dialect.name === 'postgres', (query) => query.forUpdate())
    .execute();
  await tx
    .updateTable('runs')
    .set((old) => ({ fence: old('fence', '+', 1) }))
    .$if(endedAt !== undefined, (query) =>
      query.set({ state: 'ended', finished_at: endedAt ?? null, waiting_for: null, wait_until: null }),
    )
    .where('list', 'in', lists)
    .where('finished_at', 'is', null)
    .execute();
  await tx
    .updateTable('runs')
    .set({ state: 'waiting', waiting_for: 'turn' })
    .where('list', 'in', lists)
    .where('state', '=', 'running')
    .execute();
  await tx
    .updateTable('consumers')
    .set((old) => ({ fence: old('fence', '+', 1) }))
    .where('list', 'in', lists)
    .execute();
}
