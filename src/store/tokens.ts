import type { ExpressionBuilder, Selectable, Transaction } from 'kysely';
import type { Database } from './database.ts';
import { type DisconnectOptions, disconnectInstance } from './disconnect.ts';
import { checkDurably } from './durable-check.ts';
import { isToBeTried } from './rotation-due.ts';
import type { Schema, TokenTable } from './schema.ts';
import {
  type InstalledInstance,
  type InstalledTokens,
  type InstallSince,
  storeInstall,
} from './store-install.ts';
import { hasTable } from './tables.ts';

export type TokenRow = Selectable<TokenTable>;

/** The tokens of an instance as they were read: every write of them makes a new version. */
export type ReadTokens = Pick<TokenRow, 'instance_id' | 'version'>;

/** The two sealed texts of an instance. */
export type SealedTokens = Pick<TokenRow, 'instance_id' | 'access_token' | 'refresh_token'>;

/** A grant that is over, and the words that this was noted with. */
export type EndedGrant = SealedTokens & ReadTokens & { notice: string };

/** Whether the grant of an instance is still the one that was read. */
function hasVersion(eb: ExpressionBuilder<Schema, 'instances'>, readVersion: number) {
  return eb.exists(
    eb
      .selectFrom('tokens')
      .select('instance_id')
      .whereRef('tokens.instance_id', '=', 'instances.id')
      .where('version', '=', readVersion),
  );
}

/** The table of tokens: sealed texts only, see `tokens/vault.ts`. */
export class TokenStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  find(instanceId: string): Promise<TokenRow | undefined> {
    return this.#db.selectFrom('tokens').selectAll().where('instance_id', '=', instanceId).executeTakeFirst();
  }

  /** Stores an install, as {@link storeInstall} does. */
  install(instance: InstalledInstance, tokens: InstalledTokens, since?: InstallSince): Promise<boolean> {
    return storeInstall(this.#db, instance, tokens, since);
  }

  /**
   * Makes sure that what the token route grants could be kept: the service may end the refresh token with its answer.
   *
   * @throws NewerSchemaError when the schema is a newer version's, as what it brings now would be for that one
   * @throws Error when the database cannot be written, or its disk does not keep what is
   */
  async checkWritable(): Promise<void> {
    await checkDurably(this.#db);
  }

  /**
   * Writes a refreshed grant if nobody else has written since (compare-and-swap). An instance that was taken for one
   * whose grant is over is awake then: it is not. A newer version's schema gets it, too, if it takes it: the service may
   * have ended the refresh token before it.
   *
   * @param readVersion the version that the refresh started from
   * @returns whether it was written; if not, another grant is newer or the instance was disconnected
   */
  async replace(row: TokenRow, readVersion: number): Promise<boolean> {
    const write = async (transaction: Transaction<Schema>) => {
      const result = await transaction
        .updateTable('tokens')
        .set({ ...row, version: readVersion + 1 })
        .where('instance_id', '=', row.instance_id)
        .where('version', '=', readVersion)
        .executeTakeFirst();
      if (result.numUpdatedRows === 0n) return false;
      await transaction
        .updateTable('instances')
        .set({ status: 'active', notice: null })
        .where('id', '=', row.instance_id)
        .where('status', '=', 'needs_reauthorization')
        .execute();
      return true;
    };
    return this.#db.durably(write, { inAnySchema: true });
  }

  /**
   * Notes that a grant is over, if it is still the one that was read: the instance needs a new authorization.
   *
   * @param notice why, and what to do, for the administrator
   * @returns whether that was not known before
   */
  async reject(instanceId: string, readVersion: number, notice: string): Promise<boolean> {
    const result = await this.#db.durably((transaction) =>
      transaction
        .updateTable('instances')
        .set({ status: 'needs_reauthorization', notice })
        .where('id', '=', instanceId)
        .where('status', 'in', ['active', 'paused'])
        .where((eb) => hasVersion(eb, readVersion))
        .executeTakeFirst(),
    );
    return result.numUpdatedRows > 0n;
  }

  /** What tells the key that an id stands for from others; undefined when the id was never used. */
  async keyCheck(keyId: string): Promise<string | undefined> {
    // Asked before a migration, too.
    if (!(await hasTable(this.#db, 'key_checks'))) return undefined;
    const row = await this.#db
      .selectFrom('key_checks')
      .select('check_value')
      .where('key_id', '=', keyId)
      .executeTakeFirst();
    return row?.check_value;
  }

  /** Keeps the check value of a key, if there is none for its id. @returns the one that stands */
  async keepKeyCheck(keyId: string, checkValue: string): Promise<string> {
    await this.#db.durably((transaction) =>
      transaction
        .insertInto('key_checks')
        .values({ key_id: keyId, check_value: checkValue })
        .onConflict((conflict) => conflict.doNothing())
        .execute(),
    );
    return (await this.keyCheck(keyId)) ?? checkValue;
  }

  /**
   * Takes ends of grants back, in one transaction, where the words and the grant are still those that were read.
   *
   * @returns the ids of the instances that were awakened
   */
  async takeBackEnds(ends: readonly (ReadTokens & { notice: string })[]): Promise<string[]> {
    return this.#db.durably(async (transaction) => {
      const awake: string[] = [];
      for (const { instance_id, version, notice } of ends) {
        const result = await transaction
          .updateTable('instances')
          .set({ status: 'active', notice: null })
          .where('id', '=', instance_id)
          .where('status', '=', 'needs_reauthorization')
          .where('notice', '=', notice)
          .where((eb) => hasVersion(eb, version))
          .executeTakeFirst();
        if (result.numUpdatedRows > 0n) awake.push(instance_id);
      }
      return awake;
    });
  }

  /** The grants that are over, and why was noted. */
  listEnded(): Promise<EndedGrant[]> {
    return this.#db
      .selectFrom('instances')
      .innerJoin('tokens', 'tokens.instance_id', 'instances.id')
      .select(['instance_id', 'version', 'access_token', 'refresh_token', 'notice'])
      .where('instances.status', '=', 'needs_reauthorization')
      .where('instances.notice', 'is not', null)
      .$narrowType<{ notice: string }>()
      .execute();
  }

  /** The sealed texts of the instances that come after one, in the order of their ids; `''` begins. */
  listSealed(after: string, most: number): Promise<SealedTokens[]> {
    return this.#db
      .selectFrom('tokens')
      .select(['instance_id', 'access_token', 'refresh_token'])
      .where('instance_id', '>', after)
      .orderBy('instance_id')
      .limit(most)
      .execute();
  }

  /**
   * Puts the same tokens in, sealed anew, all in one transaction; each only where what was read still stands. The
   * version stays: the grant is the same, and a refresh that is under way must be able to write its newer one.
   *
   * @returns how many were written
   */
  async reseal(changes: readonly { read: SealedTokens; sealed: SealedTokens }[]): Promise<number> {
    if (changes.length === 0) return 0;
    // Whoever is told that all are under the new key drops the old one.
    return this.#db.durably(async (transaction) => {
      let written = 0n;
      for (const { read, sealed } of changes) {
        const result = await transaction
          .updateTable('tokens')
          .set({ access_token: sealed.access_token, refresh_token: sealed.refresh_token })
          .where('instance_id', '=', read.instance_id)
          .where('access_token', '=', read.access_token)
          .where('refresh_token', '=', read.refresh_token)
          .executeTakeFirst();
        written += result.numUpdatedRows;
      }
      return Number(written);
    });
  }

  /** Ends an instance's access, as {@link disconnectInstance} does. */
  disconnect(instanceId: string, options?: DisconnectOptions): Promise<number | undefined> {
    return disconnectInstance(this.#db, instanceId, options);
  }

  /**
   * Active and paused instances whose refresh token is due for its rotation, also those of which nobody knows when, and
   * that were not tried just now.
   *
   * @param now the service's time, in milliseconds since 1970
   */
  due(now: number): Promise<ReadTokens[]> {
    return this.#db
      .selectFrom('tokens')
      .innerJoin('instances', 'instances.id', 'tokens.instance_id')
      .select(['tokens.instance_id', 'version'])
      .where('instances.status', 'in', ['active', 'paused'])
      .where((eb) => isToBeTried(eb, now, now))
      .orderBy('refresh_due_at')
      .execute();
  }
}
