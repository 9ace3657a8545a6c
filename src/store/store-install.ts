import { randomInt } from 'node:crypto';
import type { Selectable, Transaction } from 'kysely';
import type { Database } from './database.ts';
import { countBehindFrom } from './run-start.ts';
import type { Schema, TokenTable } from './schema.ts';

/**
 * So much later the grant that is stored may have come, in milliseconds, and be taken for newer than one that is stored
 * after it: longer than an install may take. A larger difference is a clock that was set.
 */
const OVERTAKEN_MS = 10 * 60_000;

/** What is counted of a row begins anywhere below this. */
const FIRST_NUMBERS = 2 ** 40;

/**
 * Where versions and access generations of a new row begin: not at 1, or a refresh that is under way over a disconnect and a
 * new install would take the new row for the one that it has read; and a session that was logged out would see the company again
 * that is installed into a new database, beside the Redis of the old one.
 */
function firstNumber(): number {
  return randomInt(1, FIRST_NUMBERS);
}

/** Generations begin above it: where there was no instance, one that is disconnected is so since. */
const NO_GENERATION = -1;

/** What is stored of a company with its grant. */
export interface InstalledInstance {
  id: string;
  company_id: string | null;
  name: string;
  /** When the grant came, local clock, milliseconds since 1970. */
  installed_at: number;
}

/** What was known before a grant could be stored. */
export interface InstallSince {
  askedAt: number;
  generation: number | undefined;
  heldMs: number;
}

/** What is stored of a grant that an install brought. */
export type InstalledTokens = Omit<
  Selectable<TokenTable>,
  'instance_id' | 'version' | 'rotations' | 'refreshes'
>;

/**
 * Stores an install: the instance, new or known, with its tokens in place of older ones, and awake. One transaction: there
 * is never an instance without tokens, nor an active one with old tokens.
 *
 * Another install of the company may have been granted later and been stored before: then its grant stays, as the service
 * may have ended this one by it. Which of two was granted later is told by when they came only where one had come before the
 * other was asked for; else the one is newer whose access token ends later, as all live equally long. A newer version's schema
 * gets it, too, if it takes it: the service may have ended the older grant by it.
 *
 * @param since.askedAt when the grant was asked for, local clock
 * @param since.generation the access generation of the instance when its grant was to be stored first, undefined when there was none:
 *   where it is disconnected since, it stays so
 * @param since.heldMs for how long the grant could not be stored, in milliseconds
 * @returns whether it was stored; if not, the instance and its grant are as a newer install, or a disconnect, has left them
 */
export function storeInstall(
  db: Database,
  instance: InstalledInstance,
  tokens: InstalledTokens,
  since?: InstallSince,
): Promise<boolean> {
  const { installed_at: cameAt } = instance;
  const awake = {
    name: instance.name,
    installed_at: cameAt,
    status: 'active',
    notice: null,
  } as const;
  const generation = since && (since.generation ?? NO_GENERATION);
  const write = async (transaction: Transaction<Schema>) => {
    // A moment that is yet to come was noted by a wrong clock, and keeps nobody out.
    const latest = Math.min(Date.now(), cameAt + OVERTAKEN_MS + (since?.heldMs ?? 0));
    /** The tokens that are stored, if their access token ends then, as seen from this one's end. */
    const stored = (ends: '<' | '>') =>
      transaction
        .selectFrom('tokens')
        .select('instance_id')
        .where('instance_id', '=', instance.id)
        .where('access_expires_at', ends, tokens.access_expires_at);
    const result = await transaction
      .insertInto('instances')
      .values({ ...instance, ...awake, access_generation: firstNumber() })
      .onConflict((conflict) =>
        conflict
          .column('id')
          .doUpdateSet((old) => ({
            ...awake,
            // Who has disconnected it sees it as it was then, and not what somebody else installs afterwards.
            access_generation: old
              .case()
              .when('instances.status', '=', 'disconnected')
              .then(old('instances.access_generation', '+', 1))
              .else(old.ref('instances.access_generation'))
              .end(),
          }))
          .where((where) =>
            where.or([
              where('instances.status', 'not in', ['active', 'paused']),
              where('instances.installed_at', '>', latest),
              where('instances.installed_at', '<', since?.askedAt ?? cameAt),
              where.and([
                where.not(where.exists(stored('>'))),
                where.or([where('instances.installed_at', '<=', cameAt), where.exists(stored('<'))]),
              ]),
            ]),
          )
          .where(({ or, eb, ref }) =>
            or([
              eb('instances.status', '!=', 'disconnected'),
              eb('instances.access_generation', '=', generation ?? ref('instances.access_generation')),
            ]),
          ),
      )
      .executeTakeFirst();
    if (result.numInsertedOrUpdatedRows === 0n) return false;
    await transaction
      .insertInto('tokens')
      .values({ ...tokens, instance_id: instance.id, version: firstNumber(), rotations: 0, refreshes: 0 })
      .onConflict((conflict) =>
        conflict
          .column('instance_id')
          .doUpdateSet((old) => ({ ...tokens, version: old('tokens.version', '+', 1) })),
      )
      .execute();
    // While the grant was over nothing could be copied: the lists are not behind since before. A newer version may have
    // changed what tells that; the grant is not to be lost for it.
    if (db.knowsSchema()) await countBehindFrom(transaction, instance.id, cameAt);
    return true;
  };
  return db.durably(write, { inAnySchema: true });
}
