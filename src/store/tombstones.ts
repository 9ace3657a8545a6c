import { createHmac, randomBytes } from 'node:crypto';
import type { Kysely, Transaction } from 'kysely';
import type { List, ListKey } from './lists.ts';
import type { Schema } from './schema.ts';

/** The setting with the key of the hashes: without it, nobody can try ids on them. */
const KEY = 'tombstone_key';

/** Hashes of one statement. */
const AT_ONCE = 500;

/** A record of a company, or one of its lists. Lists have a hash, too, so that only those with tombstones look for them. */
type Hash = (resource: string, id?: string) => string;

/**
 * Keeps the erased records of an instance out of its next installs, before its copy is deleted: hashes of company, list and
 * id stay, and nothing else. Without a company's id the next install is another instance.
 */
export async function keepTombstones(tx: Transaction<Schema>, instanceId: string): Promise<void> {
  const erased = await tx
    .selectFrom('records')
    .innerJoin('lists', 'lists.id', 'records.list')
    .select(['resource', 'external_id'])
    .where('instance_id', '=', instanceId)
    .where('erased_at', 'is not', null)
    .execute();
  if (erased.length === 0) return;
  const fresh = { name: KEY, value: randomBytes(32).toString('base64url') };
  await tx
    .insertInto('settings')
    .values(fresh)
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  const hash = await hashOf(tx, instanceId);
  if (hash === undefined) return;
  const lists = new Set(erased.map(({ resource }) => resource));
  const all = [
    ...[...lists].map((resource) => hash(resource)),
    ...erased.map(({ resource, external_id }) => hash(resource, external_id)),
  ];
  for (let at = 0; at < all.length; at += AT_ONCE) {
    const rows = all.slice(at, at + AT_ONCE).map((one) => ({ hash: one }));
    await tx
      .insertInto('tombstones')
      .values(rows)
      .onConflict((conflict) => conflict.doNothing())
      .execute();
  }
}

/** Whether records of a list were erased before the present install. */
export async function hasTombstones(tx: Kysely<Schema>, { instanceId, resource }: ListKey): Promise<boolean> {
  const hash = await hashOf(tx, instanceId);
  return hash !== undefined && (await stored(tx, [hash(resource)])).size > 0;
}

/** Which of these ids were erased before the present install of a list. A list that is gone has none. */
export async function findTombstones(
  db: Kysely<Schema>,
  list: Pick<List, 'instance_id' | 'resource' | 'has_tombstones'> | undefined,
  ids: readonly string[],
): Promise<Set<string>> {
  if (list === undefined || list.has_tombstones === 0 || ids.length === 0) return new Set();
  const { instance_id, resource } = list;
  const hash = await hashOf(db, instance_id);
  if (hash === undefined) return new Set();
  const found = await stored(
    db,
    ids.map((id) => hash(resource, id)),
  );
  return new Set(ids.filter((id) => found.has(hash(resource, id))));
}

async function stored(db: Kysely<Schema>, hashes: readonly string[]): Promise<Set<string>> {
  const found = new Set<string>();
  for (let at = 0; at < hashes.length; at += AT_ONCE) {
    const some = db
      .selectFrom('tombstones')
      .select('hash')
      .where('hash', 'in', hashes.slice(at, at + AT_ONCE));
    for (const { hash } of await some.execute()) found.add(hash);
  }
  return found;
}

/** Undefined for an instance without a company, and where no record was ever erased. */
async function hashOf(db: Kysely<Schema>, instanceId: string): Promise<Hash | undefined> {
  const row = await db
    .selectFrom('instances')
    .innerJoin('settings', (join) => join.on('settings.name', '=', KEY))
    .select(['company_id', 'value'])
    .where('id', '=', instanceId)
    .executeTakeFirst();
  if (row === undefined || row.company_id === null) return undefined;
  const { company_id, value } = row;
  return (...of) =>
    createHmac('sha256', value)
      .update(JSON.stringify([company_id, ...of]))
      .digest('base64url');
}
