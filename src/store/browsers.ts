import { createHash, randomUUID } from 'node:crypto';
import type { Kysely, Transaction } from 'kysely';
import { Store } from './database.ts';
import type { Schema } from './schema.ts';

/** A session ends this long after its last request, in milliseconds: 30 days. */
export const SESSION_LIFETIME_MS = 30 * 24 * 60 * 60_000;

/** An install can be finished within ten minutes, in milliseconds. */
export const INSTALL_LIFETIME_MS = 10 * 60_000;

/** The row and its cookie stay for an hour, in milliseconds: with them a browser that missed an answer comes back. */
export const INSTALL_KEPT_MS = 60 * 60_000;

/** Hashes a secret of a browser: a state, a nonce, a session id. The database holds hashes alone. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

/** Browsers, their sessions, and which instances they see. All moments are milliseconds since 1970. */
export class BrowserStore extends Store {
  /** The browser of a session that has not expired. */
  findSession(sidHash: string, now: number): Promise<{ browserId: string; expiresAt: number } | undefined> {
    return this.db
      .selectFrom('sessions')
      .select(['browser_id as browserId', 'expires_at as expiresAt'])
      .where('sid_hash', '=', sidHash)
      .where('expires_at', '>', now)
      .executeTakeFirst();
  }

  async touchSession(sidHash: string, expiresAt: number): Promise<void> {
    await this.db.transact((tx) =>
      tx.updateTable('sessions').set({ expires_at: expiresAt }).where('sid_hash', '=', sidHash).execute(),
    );
  }

  /** The instances that a browser sees, the newest first. */
  instancesOf(browserId: string): Promise<{ id: string; name: string }[]> {
    return this.db
      .selectFrom('access')
      .innerJoin('instances', 'instances.id', 'access.instance_id')
      .select(['instances.id', 'instances.name'])
      .where('browser_id', '=', browserId)
      .where('is_ended', '=', 0)
      .orderBy('granted_at', 'desc')
      .execute();
  }

  async sees(browserId: string, instanceId: string): Promise<boolean> {
    return (await this.#access(browserId, instanceId))?.is_ended === 0;
  }

  /** Whether a browser saw an instance until another one ended its access. */
  async isSignedOut(browserId: string, instanceId: string): Promise<boolean> {
    return (await this.#access(browserId, instanceId))?.is_ended === 1;
  }

  #access(browser_id: string, instance_id: string): Promise<{ is_ended: 0 | 1 } | undefined> {
    const access = this.db.selectFrom('access').select('is_ended');
    return access.where((eb) => eb.and({ browser_id, instance_id })).executeTakeFirst();
  }

  /** Logs a browser out: deletes it with its sessions, access and installs. */
  async logOut(browserId: string): Promise<void> {
    await this.db.durably((tx) => tx.deleteFrom('browsers').where('id', '=', browserId).execute());
  }

  /** Takes an instance off a browser's list. */
  async forget(browserId: string, instanceId: string): Promise<void> {
    const key = { browser_id: browserId, instance_id: instanceId };
    await this.db.durably((tx) =>
      tx
        .deleteFrom('access')
        .where((eb) => eb.and(key))
        .execute(),
    );
  }

  /** Ends the access of every other browser to an instance. */
  async logOutOthers(browserId: string, instanceId: string): Promise<void> {
    await this.db.durably((tx) => endAccess(tx, instanceId, browserId));
  }

  /** Deletes expired sessions and installs, and the browsers that have neither: nobody can come back as these. */
  async removeExpired(now: number): Promise<void> {
    const installsBefore = now - INSTALL_KEPT_MS + INSTALL_LIFETIME_MS;
    await this.db.transact(async (tx) => {
      await tx.deleteFrom('sessions').where('expires_at', '<=', now).execute();
      await tx.deleteFrom('installs').where('expires_at', '<=', installsBefore).execute();
      await tx
        .deleteFrom('browsers')
        .where('id', 'not in', (from) => from.selectFrom('sessions').select('browser_id'))
        .where('id', 'not in', (from) => from.selectFrom('installs').select('browser_id'))
        .execute();
    });
  }
}

/** Ends the access of all browsers to an instance, or of all but one. */
export async function endAccess(db: Kysely<Schema>, instanceId: string, exceptBrowserId = ''): Promise<void> {
  const access = db.updateTable('access').set({ is_ended: 1 }).where('instance_id', '=', instanceId);
  await access.where('browser_id', '<>', exceptBrowserId).execute();
}

/** Makes a browser. @returns its id */
export async function addBrowser(tx: Transaction<Schema>): Promise<string> {
  const id = `brw_${randomUUID()}`;
  await tx.insertInto('browsers').values({ id }).execute();
  return id;
}

/** Makes one browser of several: all sessions, installs and access become those of the first. */
export async function mergeBrowsers(
  tx: Transaction<Schema>,
  kept: string,
  others: readonly string[],
): Promise<void> {
  const moved = { browser_id: kept };
  await tx.updateTable('sessions').set(moved).where('browser_id', 'in', others).execute();
  await tx.updateTable('installs').set(moved).where('browser_id', 'in', others).execute();
  await tx
    .insertInto('access')
    .columns(['browser_id', 'instance_id', 'granted_at'])
    .expression((from) =>
      from
        .selectFrom('access')
        .select((eb) => [
          eb.val(kept).as('browser_id'),
          'instance_id',
          eb.fn.max('granted_at').as('granted_at'),
        ])
        .where('browser_id', 'in', others)
        .where('is_ended', '=', 0)
        .groupBy('instance_id'),
    )
    .onConflict((conflict) => conflict.columns(['browser_id', 'instance_id']).doUpdateSet({ is_ended: 0 }))
    .execute();
  await tx.deleteFrom('browsers').where('id', 'in', others).execute();
}
