import type { Selectable, Transaction } from 'kysely';
import {
  addBrowser,
  endAccess,
  INSTALL_LIFETIME_MS,
  mergeBrowsers,
  SESSION_LIFETIME_MS,
} from './browsers.ts';
import { Store } from './database.ts';
import { ensureList, scheduleLists } from './lists.ts';
import type { InstallTable, InstanceTable, Schema } from './schema.ts';
import type { GrantedTokens } from './token-table.ts';

export type InstallRow = Selectable<InstallTable>;

/** How a browser proves itself in a callback. All values are hashes. */
export interface BrowserProof {
  /** The nonce cookies of the request: this browser has begun those installs. */
  nonceHashes: readonly string[];
  /** The session of the request. It ends with the answer. */
  carriedSid: string | undefined;
  /** The session that the answer starts. Undefined if there is no answer yet: then the sessions stay as they are. */
  newSid: string | undefined;
}

/** Installs, from the button to an instance. All moments are milliseconds since 1970. */
export class InstallStore extends Store {
  /** Notes an install that a browser begins. A browser without a session is a new one. */
  async begin(
    {
      stateHash,
      nonceHash,
      returnTo = null,
    }: { stateHash: string; nonceHash: string; returnTo?: string | null | undefined },
    browserId: string | undefined,
    now: number,
  ): Promise<void> {
    await this.db.durably(async (tx) => {
      const browsers = tx.selectFrom('browsers').select('id');
      const known = await browsers.where('id', '=', browserId ?? '').executeTakeFirst();
      const row = {
        state_hash: stateHash,
        nonce_hash: nonceHash,
        browser_id: known?.id ?? (await addBrowser(tx)),
        return_to: returnTo,
        expires_at: now + INSTALL_LIFETIME_MS,
      };
      await tx.insertInto('installs').values(row).execute();
    });
  }

  find(stateHash: string): Promise<InstallRow | undefined> {
    return this.db.selectFrom('installs').selectAll().where('state_hash', '=', stateHash).executeTakeFirst();
  }

  /** Claims an install for one callback. @returns false when another callback has claimed it */
  claim(stateHash: string, codeHash: string | null, now: number): Promise<boolean> {
    return this.db.durably(async (tx) => {
      const { numUpdatedRows } = await tx
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
    const error = { error_kind: kind, error_detail: detail };
    await this.db.durably((tx) =>
      tx.updateTable('installs').set(error).where('state_hash', '=', stateHash).execute(),
    );
  }

  /**
   * Finishes an install in one transaction: the instance, its tokens and lists, the browser's access, a fresh session. It
   * stores the tokens even if the browser has logged out meanwhile, as the service may have ended an earlier grant.
   *
   * @param resources the names of the lists
   * @returns `isSeen`: false when the browser has logged out; `isSignIn`: whether the instance was well already
   */
  complete(
    stateHash: string,
    instance: Pick<InstanceTable, 'id' | 'company_id' | 'name'>,
    tokens: GrantedTokens,
    proof: BrowserProof,
    now: number,
    resources: readonly string[],
  ): Promise<{ isSeen: boolean; isSignIn: boolean }> {
    return this.db.durably(async (tx) => {
      const { id: instance_id, name } = instance;
      const instances = tx.selectFrom('instances').select('status');
      const known = await instances.where('id', '=', instance_id).executeTakeFirst();
      const lists = tx.selectFrom('lists').select('id').where('instance_id', '=', instance_id);
      const working = lists.where('paused_at', 'is', null).where('removed_at', 'is', null);
      const failing = await working
        .where('failing_since', 'is not', null)
        .where('resource', 'in', ['', ...resources])
        .limit(1)
        .execute();
      const isSignIn = known?.status === 'active' && failing.length === 0;
      // The browser that disconnected a company sees the old copy, but not what another browser installs later.
      if (known?.status === 'disconnected') await endAccess(tx, instance_id);
      const active = { name, named_at: now, status: 'active', error_kind: null, error_detail: null } as const;
      await tx
        .insertInto('instances')
        .values({ ...instance, ...active, installed_at: now, status_since: now })
        .onConflict((conflict) =>
          conflict
            .column('id')
            .doUpdateSet({ ...active, ...(known?.status !== 'active' && { status_since: now }) }),
        )
        .execute();
      await storeTokens(tx, instance_id, tokens);
      for (const resource of resources) await ensureList(tx, { instanceId: instance_id, resource });
      await scheduleLists(tx, { instanceId: instance_id });
      const browser_id = await this.#enter(tx, stateHash, proof, now);
      if (!isSignIn) {
        const install = {
          instance_id,
          resource: null,
          record: null,
          action: 'install',
          by: 'administrator',
          at: now,
        };
        await tx.insertInto('actions').values(install).execute();
      }
      if (browser_id === undefined) return { isSeen: false, isSignIn };
      const granted = { granted_at: now, is_ended: 0 } as const;
      await tx
        .insertInto('access')
        .values({ ...granted, browser_id, instance_id })
        .onConflict((conflict) => conflict.columns(['browser_id', 'instance_id']).doUpdateSet(granted))
        .execute();
      await tx.updateTable('installs').set({ instance_id }).where('state_hash', '=', stateHash).execute();
      return { isSeen: true, isSignIn };
    });
  }

  /** Starts a session for a callback that comes again. @returns false when the browser has logged out */
  enterAgain(stateHash: string, proof: BrowserProof, now: number): Promise<boolean> {
    return this.db.durably(async (tx) => (await this.#enter(tx, stateHash, proof, now)) !== undefined);
  }

  /**
   * Replaces the session of the request by one of the install's browser. The session and the nonces of one request belong
   * to one browser: two tabs that began without a session are merged here.
   */
  async #enter(
    tx: Transaction<Schema>,
    stateHash: string,
    { nonceHashes, carriedSid = '', newSid }: BrowserProof,
    now: number,
  ): Promise<string | undefined> {
    const installs = tx.selectFrom('installs').where('nonce_hash', 'in', [...nonceHashes]);
    // Two callbacks of one browser take turns: each merges what the other has left.
    await tx
      .selectFrom('browsers')
      .select('id')
      .where('id', 'in', installs.select('browser_id'))
      .orderBy('id')
      .$if(this.db.dialect.name === 'postgres', (query) => query.forUpdate())
      .execute();
    const begun = await installs.select(['state_hash', 'browser_id']).orderBy('browser_id').execute();
    if (!begun.some(({ state_hash }) => state_hash === stateHash)) return undefined;
    const carried = await tx
      .selectFrom('sessions')
      .select('browser_id')
      .where('sid_hash', '=', carriedSid)
      .where('expires_at', '>', now)
      .execute();
    const [kept = '', ...others] = new Set([...carried, ...begun].map(({ browser_id }) => browser_id));
    if (others.length > 0) await mergeBrowsers(tx, kept, others);
    if (newSid === undefined) return kept;
    await tx.deleteFrom('sessions').where('sid_hash', '=', carriedSid).execute();
    const session = { sid_hash: newSid, browser_id: kept, expires_at: now + SESSION_LIFETIME_MS };
    await tx.insertInto('sessions').values(session).execute();
    return kept;
  }
}

async function storeTokens(tx: Transaction<Schema>, instance_id: string, tokens: GrantedTokens) {
  const noRefresh = { lease_owner: null, lease_until: null, refresh_not_before: null, refresh_failures: 0 };
  const fresh = { ...tokens, ...noRefresh };
  await tx
    .insertInto('tokens')
    .values({ ...fresh, instance_id, version: 1, rotations: 0, refreshes: 0 })
    .onConflict((conflict) =>
      conflict.column('instance_id').doUpdateSet((old) => ({
        ...fresh,
        version: old('tokens.version', '+', 1),
      })),
    )
    .execute();
}
