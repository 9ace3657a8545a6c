import { type Selectable, sql, type Transaction } from 'kysely';
import { endAccess } from './browsers.ts';
import { Store } from './database.ts';
import { noteFailure } from './days.ts';
import { scheduleLists, stopLists } from './lists.ts';
import { discardWrites } from './outbox.ts';
import { beginRemoval } from './removals.ts';
import type { RunError } from './runs.ts';
import type { Schema, TokenTable } from './schema.ts';
import type { InstanceState } from './states.ts';
import { keepTombstones } from './tombstones.ts';

/** A rotation that left the refresh token as it was is tried again after this, in milliseconds. */
const ROTATION_RETRY_MS = 60 * 60_000;

const NO_LEASE = { lease_owner: null, lease_until: null } as const;

interface Present {
  access_token: string;
  refresh_token: string;
}

/** The tokens of an instance that has some. */
export type TokenRow = Selectable<TokenTable> & Present;

/** Tokens as a refresh reads them: with the instance's status, and the rest of the backoff. */
export type RefreshableTokens = TokenRow & {
  status: InstanceState;
  pauseLeftMs: number;
};

/** The tokens of an instance as they were read. */
export type ReadTokens = Pick<TokenRow, 'instance_id' | 'version'>;

/** Both encrypted tokens of an instance. */
export type EncryptedTokens = Pick<TokenRow, 'instance_id' | 'access_token' | 'refresh_token'>;

/** A grant, encrypted, as an install or a refresh brings it. */
export type GrantedTokens = Pick<
  TokenRow,
  | 'access_token'
  | 'refresh_token'
  | 'access_expires_at'
  | 'refresh_issued_at'
  | 'refresh_due_at'
  | 'refreshed_at'
>;

export interface DisconnectOptions {
  /** Begins to remove the copy: the caller then finishes the removal. */
  deleteData?: boolean;
  /** The only browser that still sees the instance and what is left of its copy. */
  browserId?: string;
}

/**
 * The table of tokens. Every write names the version that it read, so that a late writer overwrites nothing newer:
 *
 *     acquireLease ── the service is asked ──┬─ save: version + 1, lease and backoff cleared
 *                                            ├─ fail: lease cleared, backoff grows, the tokens stay
 *                                            └─ reject: the instance needs a new authorization
 */
export class TokenStore extends Store {
  /** The tokens of an instance; undefined where it has none, as after a disconnect. */
  find(instanceId: string): Promise<TokenRow | undefined> {
    return this.#present()
      .selectAll()
      .where('instance_id', '=', instanceId)
      .$narrowType<Present>()
      .executeTakeFirst();
  }

  findForRefresh(instanceId: string): Promise<RefreshableTokens | undefined> {
    const pauseLeft = sql<number>`coalesce(refresh_not_before, 0) - ${this.db.dialect.nowMs}`;
    return this.#present()
      .innerJoin('instances', 'instances.id', 'tokens.instance_id')
      .selectAll('tokens')
      .select(['instances.status', pauseLeft.as('pauseLeftMs')])
      .where('instance_id', '=', instanceId)
      .$narrowType<Present>()
      .executeTakeFirst();
  }

  /**
   * Takes the right to refresh for a while. The write is durable: it shows that the database takes writes before the app
   * asks the service for tokens that must not be lost.
   *
   * @returns false when another process has it, or the tokens have changed
   */
  acquireLease(read: ReadTokens, owner: string, leaseMs: number): Promise<boolean> {
    const { nowMs } = this.db.dialect;
    return this.db.durably(async (tx) => {
      const { numUpdatedRows } = await asRead(tx, read)
        .set({ lease_owner: owner, lease_until: sql<number>`${nowMs} + ${leaseMs}` })
        .where('access_token', 'is not', null)
        .where((eb) => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', nowMs)]))
        .executeTakeFirst();
      return numUpdatedRows > 0n;
    });
  }

  /**
   * Stores the tokens of a refresh. If another process has marked the instance for a new authorization meanwhile, it is
   * active again: its grant is good.
   *
   * @param pauseMs how long no further refresh may follow a 401
   * @returns false, with nothing written, when another grant is newer or the instance was disconnected
   */
  save(read: ReadTokens, tokens: GrantedTokens, pauseMs: number): Promise<boolean> {
    return this.db.durably(async (tx) => {
      const isRotated = sql<number>`case when refresh_issued_at <> ${tokens.refresh_issued_at} then 1 else 0 end`;
      const { numUpdatedRows } = await asRead(tx, read)
        .set((old) => ({
          ...tokens,
          ...NO_LEASE,
          rotations: old('rotations', '+', isRotated),
          version: read.version + 1,
          refreshes: old('refreshes', '+', 1),
          refresh_not_before: sql<number>`${this.db.dialect.nowMs} + ${pauseMs}`,
          refresh_failures: 0,
        }))
        .where('access_token', 'is not', null)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      const { numUpdatedRows: woken } = await tx
        .updateTable('instances')
        .set({ status: 'active', error_kind: null, error_detail: null, status_since: Date.now() })
        .where((eb) => eb.and({ id: read.instance_id, status: 'needs_reauthorization' }))
        .executeTakeFirst();
      if (woken > 0n) await scheduleLists(tx, { instanceId: read.instance_id });
      return true;
    });
  }

  /** Notes a refresh that failed, and ends the lease: nobody tries again for a while. */
  async fail(read: ReadTokens, owner: string, pauseMs: number): Promise<void> {
    await this.db.durably((tx) =>
      asRead(tx, read)
        .set((old) => ({
          ...NO_LEASE,
          refresh_not_before: sql<number>`${this.db.dialect.nowMs} + ${pauseMs}`,
          refresh_failures: old('refresh_failures', '+', 1),
        }))
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
    return this.db.durably(async (tx) => {
      const { numUpdatedRows } = await tx
        .updateTable('instances')
        .set({
          status: 'needs_reauthorization',
          error_kind: error.kind,
          error_detail: error.detail,
          status_since: Date.now(),
        })
        .where('status', 'in', ['active', 'paused'])
        .where('id', '=', (from) =>
          from
            .selectFrom('tokens')
            .select('instance_id')
            .where((eb) => eb.and({ instance_id, version })),
        )
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return false;
      // A worker that meets this error would make its list due again.
      await stopLists(this.db, tx, { instanceId: instance_id });
      await noteFailure(tx, { instance_id }, Date.now());
      return true;
    });
  }

  /** Some of the encrypted tokens, in the order of their instances' ids; `''` begins. */
  listEncrypted(after: string, limit: number): Promise<EncryptedTokens[]> {
    return this.#present()
      .select(['instance_id', 'access_token', 'refresh_token'])
      .where('instance_id', '>', after)
      .orderBy('instance_id')
      .limit(limit)
      .$narrowType<Present>()
      .execute();
  }

  /**
   * Replaces encrypted texts by others of the same tokens, where nobody has changed them since they were read. The version
   * stays, so that a refresh that is under way can store its answer.
   *
   * @returns how many instances were written
   */
  reencrypt(changes: readonly { read: EncryptedTokens; written: EncryptedTokens }[]): Promise<number> {
    return this.db.durably(async (tx) => {
      let count = 0;
      for (const { read, written } of changes) {
        const { numUpdatedRows } = await tx
          .updateTable('tokens')
          .set(written)
          .where((eb) => eb.and(read))
          .executeTakeFirst();
        count += Number(numUpdatedRows);
      }
      return count;
    });
  }

  /**
   * Ends an instance's access in one transaction: its state, its tokens, its runs, its outbox, and the access of other
   * browsers.
   *
   * @returns how many writes were discarded; undefined when there is no such instance
   */
  disconnect(
    instanceId: string,
    { deleteData = false, browserId }: DisconnectOptions = {},
  ): Promise<number | undefined> {
    return this.db.durably(async (tx) => {
      const { numUpdatedRows } = await tx
        .updateTable('instances')
        .set({ status: 'disconnected', error_kind: null, error_detail: null, status_since: Date.now() })
        .where('id', '=', instanceId)
        .executeTakeFirst();
      if (numUpdatedRows === 0n) return undefined;
      // The row stays with a higher version: a refresh that is under way stores nothing, even after a new install.
      await tx
        .updateTable('tokens')
        .set((old) => ({ access_token: null, refresh_token: null, version: old('version', '+', 1) }))
        .where('instance_id', '=', instanceId)
        .execute();
      await endAccess(tx, instanceId, browserId);
      const now = Date.now();
      await stopLists(this.db, tx, { instanceId, endedAt: now });
      if (deleteData) {
        await keepTombstones(tx, instanceId);
        await beginRemoval(tx, instanceId, now);
      }
      // After the consumers, which a handler that adds writes has locked.
      return discardWrites(this.db, tx, instanceId, { deletesData: deleteData });
    });
  }

  /**
   * Active and paused instances whose refresh token is due for rotation. It leaves out those that were refreshed within
   * the hour, and those whose backoff lasts.
   *
   * @param now the service's time, in milliseconds since 1970
   */
  due(now: number): Promise<ReadTokens[]> {
    const { nowMs } = this.db.dialect;
    return (
      this.db
        .selectFrom('tokens')
        .innerJoin('instances', 'instances.id', 'tokens.instance_id')
        .select(['tokens.instance_id', 'version'])
        .where('instances.status', 'in', ['active', 'paused'])
        .where('refresh_due_at', '<=', now)
        .where('refreshed_at', '<=', now - ROTATION_RETRY_MS)
        .where((eb) => eb.or([eb('refresh_failures', '=', 0), eb('refresh_not_before', '<=', nowMs)]))
        // Another worker renews those with a lease.
        .where((eb) => eb.or([eb('lease_until', 'is', null), eb('lease_until', '<=', nowMs)]))
        // In another order in each worker: so they do not wait for each other's leases.
        .orderBy(sql`random()`)
        .execute()
    );
  }

  #present() {
    return this.db.selectFrom('tokens').where('access_token', 'is not', null);
  }
}

/** Updates tokens that nobody has changed since they were read. */
function asRead(tx: Transaction<Schema>, { instance_id, version }: ReadTokens) {
  return tx.updateTable('tokens').where((eb) => eb.and({ instance_id, version }));
}
