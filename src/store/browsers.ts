import { createHash, randomUUID } from 'node:crypto';
import type { Kysely, Transaction } from 'kysely';
import type { Database } from './database.ts';
import type { Schema } from './schema.ts';

/** A session ends this long after its last request, in milliseconds: 30 days. */
export const SESSION_LIFETIME_MS = 30 * 24 * 60 * 60_000;

/** An install can be finished within ten minutes, in milliseconds. */
export const INSTALL_LIFETIME_MS = 10 * 60_000;

/** The row and its cookie stay for an hour, in milliseconds: a browser that has missed an answer comes back by them. */
export const INSTALL_KEPT_MS = 60 * 60_000;

/** Hashes a secret of a browser: a state, a nonce, a session id. What is stored of it opens nothing. */
export function hashSecret(secret: string): string {
  return createHash('sha256').update(secret).digest('base64url');
}

/** Browsers, their sessions, and which instances they see. All moments are milliseconds since 1970. */
export class BrowserStore {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  /** The browser of a session that has not expired. */
  async findSession(
    sidHash: string,
    now: number,
  ): Promise<{ browserId: string; expiresAt: number } | undefined> {
    const row = await this.#db
      .selectFrom('sessions')
      .select(['browser_id', 'expires_at'])
      .where('sid_hash', '=', sidHash)
      .where('expires_at', '>', now)
      .executeTakeFirst();
    return row && { browserId: row.browser_id, expiresAt: row.expires_at };
  }

  /** Prolongs a session. */
  async touchSession(sidHash: string, expiresAt: number): Promise<void> {
    await this.#db.transact((transaction) =>
      transaction
        .updateTable('sessions')
        .set({ expires_at: expiresAt })
        .where('sid_hash', '=', sidHash)
        .execute(),
    );
  }

  /** The ids of the instances that a browser sees, the newest first. */
  async instancesOf(browserId: string): Promise<string[]> {
    const rows = await this.#db
      .selectFrom('access')
      .select('instance_id')
      .where('browser_id', '=', browserId)
      .orderBy('granted_at', 'desc')
      .execute();
    return rows.map(({ instance_id }) => instance_id);
  }

  async sees(browserId: string, instanceId: string): Promise<boolean> {
    const row = await this.#db
      .selectFrom('access')
      .select('instance_id')
      .where('browser_id', '=', browserId)
      .where('instance_id', '=', instanceId)
      .executeTakeFirst();
    return row !== undefined;
  }

  /** The browsers that see an instance. */
  async whoSees(instanceId: string): Promise<Set<string>> {
    const rows = await this.#db
      .selectFrom('access')
      .select('browser_id')
      .where('instance_id', '=', instanceId)
      .execute();
    return new Set(rows.map(({ browser_id }) => browser_id));
  }

  /** Logs a browser out: deletes it with its sessions, access and installs. */
  async logOut(browserId: string): Promise<void> {
    await this.#db.durably((transaction) =>
      transaction.deleteFrom('browsers').where('id', '=', browserId).execute(),
    );
  }

  /** Takes an instance off a browser's list. */
  async forget(browserId: string, instanceId: string): Promise<void> {
    await this.#db.durably((transaction) =>
      transaction
        .deleteFrom('access')
        .where('browser_id', '=', browserId)
        .where('instance_id', '=', instanceId)
        .execute(),
    );
  }

  /** Ends the access of every other browser to an instance. */
  async logOutOthers(browserId: string, instanceId: string): Promise<void> {
    await this.#db.durably((transaction) => endAccess(transaction, instanceId, browserId));
  }

  /** Deletes expired sessions and installs, and browsers that have neither: nobody can come back as these. */
  async removeExpired(now: number): Promise<void> {
    await this.#db.transact(async (transaction) => {
      const sessions = await transaction
        .deleteFrom('sessions')
        .where('expires_at', '<=', now)
        .executeTakeFirst();
      const installs = await transaction
        .deleteFrom('installs')
        .where('expires_at', '<=', now - INSTALL_KEPT_MS + INSTALL_LIFETIME_MS)
        .executeTakeFirst();
      if (sessions.numDeletedRows + installs.numDeletedRows === 0n) return;
      await transaction
        .deleteFrom('browsers')
        .where('id', 'not in', (from) => from.selectFrom('sessions').select('browser_id'))
        .where('id', 'not in', (from) => from.selectFrom('installs').select('browser_id'))
        .execute();
    });
  }
}

/** Ends the access of all browsers to an instance, or of all but one. */
export async function endAccess(
  db: Kysely<Schema>,
  instanceId: string,
  exceptBrowserId?: string,
): Promise<void> {
  await db
    .deleteFrom('access')
    .where('instance_id', '=', instanceId)
    .$if(exceptBrowserId !== undefined, (query) => query.where('browser_id', '<>', exceptBrowserId ?? ''))
    .execute();
}

/** Makes a browser. @returns its id */
export async function addBrowser(transaction: Transaction<Schema>): Promise<string> {
  const id = `brw_${randomUUID()}`;
  await transaction.insertInto('browsers').values({ id }).execute();
  return id;
}

/** Makes one browser of several: all sessions, installs and access become those of the first. */
export async function mergeBrowsers(
  transaction: Transaction<Schema>,
  [kept = '', ...others]: readonly string[],
): Promise<void> {
  if (others.length === 0) return;
  const moved = { browser_id: kept };
  await transaction.updateTable('sessions').set(moved).where('browser_id', 'in', others).execute();
  await transaction.updateTable('installs').set(moved).where('browser_id', 'in', others).execute();
  await transaction
    .insertInto('access')
    .columns(['browser_id', 'instance_id', 'granted_at'])
    .expression((from) =>
      from
        .selectFrom('access')
        .select((eb) => [eb.val(kept).as('browser_id'), 'instance_id', 'granted_at'])
        .where('browser_id', 'in', others),
    )
    .onConflict((conflict) => conflict.doNothing())
    .execute();
  await transaction.deleteFrom('browsers').where('id', 'in', others).execute();
}
