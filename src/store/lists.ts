import { type ExpressionBuilder, type Kysely, type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from './database.ts';
import type { ListTable, Schema } from './schema.ts';
import { hasTombstones } from './tombstones.ts';

export type List = Selectable<ListTable>;

/** Names a list: one instance, one resource. */
export interface ListKey {
  instanceId: string;
  resource: string;
}

/** A list that a worker holds: it writes nothing once `fence` or `commits` of the row differ. */
export interface ListClaim {
  list: number;
  /** The open full run, or else the last one: records are noted as seen by it. */
  run: number;
  fence: number;
  /** Of checks: every commit of the holder's own checks raises it here, too. */
  commits: number;
}

export const NO_WAIT = { waiting_for: null, wait_until: null } as const;

/** Lists that runs and checks work on: of active instances, neither paused nor removed. */
export function isActive(eb: ExpressionBuilder<Schema, 'lists'>) {
  const active = eb.selectFrom('instances').select('instances.id').where('status', '=', 'active');
  return eb.and([eb('instance_id', 'in', active), eb.and({ paused_at: null, removed_at: null })]);
}

/** When a list without an open run is due, in milliseconds since 1970: for its next full run or check. */
export function nextStart({ full_due_at, check_due_at }: Pick<List, 'full_due_at' | 'check_due_at'>): number {
  return Math.min(full_due_at, check_due_at ?? full_due_at);
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
  const has_tombstones = (await hasTombstones(tx, key)) ? 1 : 0;
  await tx
    .insertInto('lists')
    .values({ instance_id: key.instanceId, resource: key.resource, has_tombstones })
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  return (await findList(tx, key))?.id ?? 0;
}

/** Locks a list's row, so that one transaction at a time writes its records. Undefined for a removed list. */
export async function lockList(db: Database, tx: Kysely<Schema>, list: number): Promise<List | undefined> {
  const row = await tx
    .selectFrom('lists')
    .selectAll()
    .where('id', '=', list)
    .$if(db.dialect.name === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst();
  return row?.removed_at === null ? row : undefined;
}

/**
 * Locks the list of a claim.
 *
 * @returns undefined when another worker has claimed it since, somebody paused or ended it, or a crash of the database
 *   took back a commit
 */
export async function lockClaimed(
  db: Database,
  tx: Kysely<Schema>,
  claim: ListClaim,
): Promise<List | undefined> {
  return ifHeld(await lockList(db, tx, claim.list), claim);
}

/** The locked row of a list, if the claim holds. */
export function ifHeld(list: List | undefined, { fence, commits }: ListClaim): List | undefined {
  return list?.removed_at === null && list.fence === fence && list.commits === commits ? list : undefined;
}

/**
 * The next number of a list's change feed: at least the last one plus one, and the clock in microseconds. So no number
 * comes twice, even if the database was restored or the company installed again.
 */
export function nextSeq(last: number): number {
  return Math.max(last + 1, Date.now() * 1_000);
}

/**
 * Stops the lists of an instance, or one of them: workers that hold them cannot write any more, and none is due.
 *
 * @param of.endedAt when the open runs end for good (milliseconds since 1970); without it they stay open
 */
export async function stopLists(
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
    .updateTable('lists')
    .set((old) => ({ fence: old('fence', '+', 1), due_at: null }))
    .where('id', 'in', lists)
    .execute();
  const open = tx.updateTable('runs').where('list', 'in', lists).where('finished_at', 'is', null);
  if (endedAt !== undefined) await open.set({ ...NO_WAIT, state: 'ended', finished_at: endedAt }).execute();
  else await open.set({ state: 'waiting', waiting_for: 'turn' }).where('state', '=', 'running').execute();
  await tx
    .updateTable('consumers')
    .set((old) => ({ fence: old('fence', '+', 1) }))
    .where('list', 'in', lists)
    .execute();
}

/** Sets when the lists of an instance that has just become active are due, or one of them. Paused lists never are. */
export async function scheduleLists(
  tx: Kysely<Schema>,
  { instanceId, resource }: Pick<ListKey, 'instanceId'> & Partial<ListKey>,
): Promise<void> {
  const open = sql`select coalesce(wait_until, 0) from runs where list = lists.id and finished_at is null`;
  const next = sql`case when check_due_at < full_due_at then check_due_at else full_due_at end`;
  await tx
    .updateTable('lists')
    .set({ due_at: sql<number>`coalesce((${open}), ${next})` })
    .where((eb) => eb.and({ instance_id: instanceId, ...(resource !== undefined && { resource }) }))
    .where(isActive)
    .execute();
}
