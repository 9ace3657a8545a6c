import type { Selectable, Transaction } from 'kysely';
import {
  addBrowser,
  endAccess,
  INSTALL_LIFETIME_MS,
  mergeBrowsers,
  SESSION_LIFETIME_MS,
} from './browsers.ts';
import type { Database } from './database.ts';
import type { InstallTable, Schema, TokenTable } from './schema.ts';

export type InstallRow = Selectable<InstallTable>;

/** How a browser proves itself in a callback; all values are hashes. */
export interface BrowserProof {
  /** Of the nonce cookies that the request carries: this browser has begun those installs. */
  nonceHashes: readonly string[];
  /** Of the session that the request carries. It ends with the answer. */
  carriedSid: string | undefined;
  /** Of the session that the answer starts. */
  newSid: string;
}

/** What an install stores of the company. */
interface InstalledInstance {
  id: string;
  /** Null when the service does not tell which company it is. */
  company_id: string | null;
  name: string;
}

/** The grant of an install, encrypted. */
export type InstalledTokens = Pick<
  Selectable<TokenTable>,
  'access_expires_at' | 'refresh_issued_at' | 'refresh_due_at' | 'refreshed_at'
> & { access_token: string; refresh_token: string };

/** Installs, from the button to an instance. All moments are milliseconds since 1970. */
export class InstallStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** Notes an install that a browser begins: the one of its session, or a new one. */
  async begin(
    {
      stateHash,
      nonceHash,
      returnTo,
    }: { stateHash: string; nonceHash: string; returnTo?: string | undefined },
    browserId: string | undefined,
    now: number,
  ): Promise<void> {
    await this.#db.durably(async (transaction) => {
      const known = await transaction
        .selectFrom('browsers')
        .select('id')
        .where('id', '=', browserId ?? '')
        .executeTakeFirst();
      await transaction
        .insertInto('installs')
        .values({
          state_hash: stateHash,
          nonce_hash: nonceHash,
          browser_id: known?.id ?? (await addBrowser(transaction)),
          return_to: returnTo ?? null,
          expires_at: now + INSTALL_LIFETIME_MS,
        })
        .execute();
    });
  }

  find(stateHash: string): Promise<InstallRow | undefined> {
    return this.#db.selectFrom('installs').selectAll().where('state_hash', '=', stateHash).executeTakeFirst();
  }

  /** Claims an install for one callback. @returns false when another callback has claimed it */
  async claim(stateHash: string, codeHash: string | null, now: number): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('installs')
        .set({ claimed_at: now, code_hash: codeHash })
        .where('state_hash', '=', stateHash)
        .where('claimed_at', 'is', null)
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /** Notes why a claimed install has failed, for a second click. */
  async fail(stateHash: string, kind: string, detail: string): Promise<void> {
    await this.#db.durably((transaction) =>
      transaction
        .updateTable('installs')
        .set({ error_kind: kind, error_detail: detail })
        .where('state_hash', '=', stateHash)
        .execute(),
    );
  }

  /**
   * Finishes an install in one transaction: the instance, its tokens, the browser's access, a fresh session. The tokens
   * are stored even if the browser has logged out meanwhile, as the service may have ended an earlier grant.
   *
   * @returns whether the browser sees the instance: false when it has logged out
   */
  complete(
    stateHash: string,
    instance: InstalledInstance,
    tokens: InstalledTokens,
    proof: BrowserProof,
    now: number,
  ): Promise<boolean> {
    const write = async (transaction: Transaction<Schema>) => {
      await storeInstance(transaction, instance, now);
      await storeTokens(transaction, instance.id, tokens);
      const browserId = await this.#enter(transaction, stateHash, proof, now);
      if (browserId === undefined) return false;
      await transaction
        .insertInto('access')
        .values({ browser_id: browserId, instance_id: instance.id, granted_at: now })
        .onConflict((conflict) =>
          conflict.columns(['browser_id', 'instance_id']).doUpdateSet({ granted_at: now }),
        )
        .execute();
      await transaction
        .updateTable('installs')
        .set({ instance_id: instance.id })
        .where('state_hash', '=', stateHash)
        .execute();
      return true;
    };
    return this.#db.durably(write);
  }

  /** Starts a session for a callback that comes again. @returns false when the browser has logged out */
  enterAgain(stateHash: string, proof: BrowserProof, now: number): Promise<boolean> {
    return this.#db.durably(
      async (transaction) => (await this.#enter(transaction, stateHash, proof, now)) !== undefined,
    );
  }

  /**
   * Ends the session that the request carried and starts another one, for the browser of the install. The session and the
   * nonces that one request carries belong to one browser: two tabs that began without a session are merged here.
   */
  async #enter(
    transaction: Transaction<Schema>,
    stateHash: string,
    { nonceHashes, carriedSid, newSid }: BrowserProof,
    now: number,
  ): Promise<string | undefined> {
    // Two callbacks of one browser take turns: each merges what the other has left.
    await transaction
      .selectFrom('browsers')
      .select('id')
      .where('id', 'in', (from) =>
        from
          .selectFrom('installs')
          .select('browser_id')
          .where('nonce_hash', 'in', [...nonceHashes]),
      )
      .orderBy('id')
      .$if(this.#db.dialect.name === 'postgres', (query) => query.forUpdate())
      .execute();
    const begun = await transaction
      .selectFrom('installs')
      .select(['state_hash', 'browser_id'])
      .where('nonce_hash', 'in', [...nonceHashes])
      .orderBy('browser_id')
      .execute();
    if (!begun.some(({ state_hash }) => state_hash === stateHash)) return undefined;
    const carried = await transaction
      .selectFrom('sessions')
      .select('browser_id')
      .where('sid_hash', '=', carriedSid ?? '')
      .where('expires_at', '>', now)
      .executeTakeFirst();
    const ids = new Set([
      ...(carried ? [carried.browser_id] : []),
      ...begun.map(({ browser_id }) => browser_id),
    ]);
    const [kept = ''] = ids;
    await mergeBrowsers(transaction, [...ids]);
    if (carriedSid !== undefined) {
      await transaction.deleteFrom('sessions').where('sid_hash', '=', carriedSid).execute();
    }
    await transaction
      .insertInto('sessions')
      .values({ sid_hash: newSid, browser_id: kept, expires_at: now + SESSION_LIFETIME_MS })
      .execute();
    return kept;
  }
}

async function storeInstance(
  transaction: Transaction<Schema>,
  instance: InstalledInstance,
  now: number,
): Promise<void> {
  const known = await transaction
    .selectFrom('instances')
    .select('status')
    .where('id', '=', instance.id)
    .executeTakeFirst();
  // Who has disconnected a company sees what was copied until then, and not what somebody else installs afterwards.
  if (known?.status === 'disconnected') await endAccess(transaction, instance.id);
  const awake = { name: instance.name, status: 'active', error_kind: null, error_detail: null } as const;
  await transaction
    .insertInto('instances')
    .values({ ...instance, ...awake, installed_at: now })
    .onConflict((conflict) => conflict.column('id').doUpdateSet(awake))
    .execute();
}

async function storeTokens(
  transaction: Transaction<Schema>,
  instanceId: string,
  tokens: InstalledTokens,
): Promise<void> {
  const fresh = {
    ...tokens,
    lease_owner: null,
    lease_until: null,
    refresh_not_before: null,
    refresh_failures: 0,
  };
  await transaction
    .insertInto('tokens')
    .values({ ...fresh, instance_id: instanceId, version: 1, rotations: 0, refreshes: 0 })
    .onConflict((conflict) =>
      conflict.column('instance_id').doUpdateSet((old) => ({
        ...fresh,
        version: old('tokens.version', '+', 1),
      })),
    )
    .execute();
}
