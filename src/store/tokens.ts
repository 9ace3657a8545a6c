import { type Selectable, sql, type Transaction } from 'kysely';
import type { Database } from './database.ts';
import { type DisconnectOptions, disconnectInstance } from './disconnect.ts';
import type { RunError } from './runs.ts';
import type { Schema, TokenTable } from './schema.ts';
import type { InstanceState } from './states.ts';

/** A rotation that left the refresh token as it was is tried again after this, in milliseconds. */
const ROTATION_RETRY_MS = 60 * 60_000;

/** The tokens of an instance that has some. */
export type TokenRow = Selectable<TokenTable> & { access_token: string; refresh_token: string };

/** Tokens as a refresh reads them: with the instance's status, and how long the backoff still lasts. */
export type RefreshableTokens = TokenRow & {
  status: InstanceState;
  pauseLeftMs: number;
};

/** The tokens of an instance as they were read. */
export type ReadTokens = Pick<TokenRow, 'instance_id' | 'version'>;

/** Both encrypted tokens of an instance. */
export type EncryptedTokens = Pick<TokenRow, 'instance_id' | 'access_token' | 'refresh_token'>;

/** What a refresh brings. */
type RefreshedTokens = Pick<
  TokenRow,
  | 'access_token'
  | 'refresh_token'
  | 'access_expires_at'
  | 'refresh_issued_at'
  | 'refresh_due_at'
  | 'refreshed_at'
>;

/**
 * The table of tokens. Every write names the version that it read, so that a late writer overwrites nothing newer:
 *
 *     acquireLease ── the service is asked ──┬─ save: version + 1, lease and backoff cleared
 *                                            ├─ fail: lease cleared, backoff grows, the tokens stay
 *                                            └─ reject: the instance needs a new authorization
 */
export class TokenStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The tokens of an instance; undefined where it has none, as after a disconnect. */
  find(instanceId: string): Promise<TokenRow | undefined> {
    return this.#db
      .selectFrom('tokens')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('access_token', 'is not', null)
      .$narrowType<{ access_token: string; refresh_token: string }>()
      .executeTakeFirst();
  }

  findForRefresh(instanceId: string): Promise<RefreshableTokens | undefined> {
    return this.#db
      .selectFrom('tokens')
      .innerJoin('instances', 'instances.id', 'tokens.instance_id')
      .selectAll('tokens')
      .select([
        'instances.status',
        sql<number>`coalesce(refresh_not_before, 0) - ${this.#db.dialect.nowMs}`.as('pauseLeftMs'),
      ])
      .where('instance_id', '=', instanceId)
      .where('access_token', 'is not', null)
      .$narrowType<{ access_token: string; refresh_token: string }>()
      .executeTakeFirst();
  }

  /**
   * Takes the right to refresh for a while. Being durable, it also shows that the database takes writes before the service
   * is asked for something that must not be lost.
   *
   * @returns false when another process has it, or the tokens have changed
   */
  acquireLease({ instance_id, version }: ReadTokens, owner: string, leaseMs: number): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('tokens')
        .set({ lease_owner: owner, lease_until: sql<number>`${this.#db.dialect.nowMs} + ${leaseMs}` })
        .where('instance_id', '=', instance_id)
        .where('version', '=', version)
        .where('access_token', 'is not', null)
        .where((eb) =>
          eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', this.#db.dialect.nowMs)]),
        )
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /**
   * Stores what a refresh has brought. An instance that a sibling has marked for a new authorization meanwhile is active
   * again: its grant is good.
   *
   * @param pauseMs how long no further refresh may follow a 401
   * @returns false when another grant is newer, or the instance was disconnected: nothing is written then
   */
  save({ instance_id, version }: ReadTokens, tokens: RefreshedTokens, pauseMs: number): Promise<boolean> {
    const write = async (transaction: Transaction<Schema>) => {
      const { numUpdatedRows } = await transaction
        .updateTable('tokens')
        .set((old) => ({
          ...tokens,
          rotations: old
            .case()
            .when('refresh_issued_at', '<>', tokens.refresh_issued_at)
            .then(old('rotations', '+', 1))
            .else(old.ref('rotations'))
            .end(),
          version: version + 1,
          refreshes: old('refreshes', '+', 1),
          lease_owner: null,
          lease_until: null,
          refresh_not_before: sql<number>`${this.#db.dialect.nowMs} + ${pauseMs}`,
          refresh_failures: 0,
        }))
        .where('instance_id', '=', instance_id)
        .where('version', '=', version)
        .where('access_token', 'is not', null)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      await transaction
        .updateTable('instances')
        .set({ status: 'active', error_kind: null, error_detail: null })
        .where('id', '=', instance_id)
        .where('status', '=', 'needs_reauthorization')
        .execute();
      return true;
    };
    return this.#db.durably(write);
  }

  /** Notes a refresh that failed: nobody tries again for a while. The lease ends. */
  async fail({ instance_id, version }: ReadTokens, owner: string, pauseMs: number): Promise<void> {
    await this.#db.durably((transaction) =>
      transaction
        .updateTable('tokens')
        .set((old) => ({
          lease_owner: null,
          lease_until: null,
          refresh_not_before: sql<number>`${this.#db.dialect.nowMs} + ${pauseMs}`,
          refresh_failures: old('refresh_failures', '+', 1),
        }))
        .where('instance_id', '=', instance_id)
        .where('version', '=', version)
        .where('lease_owner', '=', owner)
        .execute(),
    );
  }

  /**
   * Marks an instance for a new authorization, if its tokens are still those that were read.
   *
   * @returns whether that was not known before
   */
  reject({ instance_id, version }: ReadTokens, error: RunError): Promise<boolean> {
    return this.#db.durably(async (transaction) => {
      const { numUpdatedRows } = await transaction
        .updateTable('instances')
        .set({ status: 'needs_reauthorization', error_kind: error.kind, error_detail: error.detail })
        .where('id', '=', instance_id)
        .where('status', 'in', ['active', 'paused'])
        .where('id', 'in', (from) =>
          from
            .selectFrom('tokens')
            .select('instance_id')
            .where('instance_id', '=', instance_id)
            .where('version', '=', version),
        )
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /** Some of the encrypted tokens, in the order of their instances' ids; `''` begins. */
  listEncrypted(after: string, limit: number): Promise<EncryptedTokens[]> {
    return this.#db
      .selectFrom('tokens')
      .select(['instance_id', 'access_token', 'refresh_token'])
      .where('instance_id', '>', after)
      .where('access_token', 'is not', null)
      .$narrowType<{ access_token: string; refresh_token: string }>()
      .orderBy('instance_id')
      .limit(limit)
      .execute();
  }

  /**
   * Replaces encrypted texts by others of the same tokens, each only where it still is what was read. The version stays: a
   * refresh that is under way must be able to store its answer.
   *
   * @returns how many instances were written
   */
  reencrypt(changes: readonly { read: EncryptedTokens; written: EncryptedTokens }[]): Promise<number> {
    return this.#db.durably(async (transaction) => {
      let count = 0n;
      for (const { read, written } of changes) {
        const { numUpdatedRows } = await transaction
          .updateTable('tokens')
          .set({ access_token: written.access_token, refresh_token: written.refresh_token })
          .where('instance_id', '=', read.instance_id)
          .where('access_token', '=', read.access_token)
          .where('refresh_token', '=', read.refresh_token)
          .executeTakeFirst();
        count += numUpdatedRows;
      }
      return Number(count);
    });
  }

  /** Ends an instance's access, as {@link disconnectInstance} does. */
  disconnect(instanceId: string, options?: DisconnectOptions): Promise<boolean> {
    return disconnectInstance(this.#db, instanceId, options);
  }

  /**
   * Active and paused instances whose refresh token is due for rotation, without those refreshed within the hour and those
   * whose backoff lasts.
   *
   * @param now the service's time, in milliseconds since 1970
   */
  due(now: number): Promise<ReadTokens[]> {
    return this.#db
      .selectFrom('tokens')
      .innerJoin('instances', 'instances.id', 'tokens.instance_id')
      .select(['tokens.instance_id', 'version'])
      .where('instances.status', 'in', ['active', 'paused'])
      .where('refresh_due_at', '<=', now)
      .where('refreshed_at', '<=', now - ROTATION_RETRY_MS)
      .where((eb) =>
        eb.or([eb('refresh_failures', '=', 0), eb('refresh_not_before', '<=', this.#db.dialect.nowMs)]),
      )
      .orderBy('refresh_due_at')
      .execute();
  }
}
