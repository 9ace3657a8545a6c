import { type Kysely, sql } from 'kysely';
import { isInGeneration } from './access-generation.ts';
import type { Database } from './database.ts';
import { beginRemoval } from './removals.ts';
import { UNSTARTED } from './run-start.ts';
import type { Schema } from './schema.ts';

/** How an instance is disconnected. */
export interface DisconnectOptions {
  /** The copy is to be removed: whoever finishes the removal takes it out afterwards. */
  deleteData?: boolean;
  /** Only from this access generation. */
  from?: number;
}

/**
 * Ends an instance's access: its state, its tokens, its runs, what browsers see of it, and that its copy goes, if that is
 * asked for. All in one transaction, as a process may stand still or end between two: a disconnected instance never keeps tokens that nobody
 * would look for any more, and what is installed and copied afterwards is none of this disconnect's.
 *
 * @returns the access generation that begins with it; undefined when there is no such instance, or it is in another
 *   generation: nothing is done then
 */
export function disconnectInstance(
  db: Database,
  instanceId: string,
  { deleteData = false, from }: DisconnectOptions = {},
): Promise<number | undefined> {
  return db.durably(async (transaction) => {
    const instance = await transaction
      .updateTable('instances')
      .set((old) => ({
        status: 'disconnected',
        notice: null,
        access_generation: old('access_generation', '+', 1),
      }))
      .where('id', '=', instanceId)
      .where((eb) => isInGeneration(eb, from))
      .returning('access_generation')
      .executeTakeFirst();
    if (instance === undefined) return undefined;
    await transaction.deleteFrom('tokens').where('instance_id', '=', instanceId).execute();
    await endRuns(transaction, instanceId);
    if (deleteData) await beginRemoval(transaction, instanceId);
    return instance.access_generation;
  });
}

/**
 * Whoever works on a run cannot commit any more, and the next install begins at the first page. Records of the copy may
 * stay, and stay counted.
 */
async function endRuns(transaction: Kysely<Schema>, instanceId: string): Promise<void> {
  const { stored: _stored, ...ended } = UNSTARTED;
  await transaction
    .updateTable('runs')
    .set({ ...ended, fence: sql<number>`fence + 1` })
    .where('instance_id', '=', instanceId)
    .execute();
  await transaction
    .deleteFrom('seen_ranges')
    .where('list', 'in', (lists) =>
      lists.selectFrom('runs').select('list').where('instance_id', '=', instanceId),
    )
    .execute();
}
