import { setTimeout as sleep } from 'node:timers/promises';
import { ServiceError } from '../client/errors.ts';
import type { TokenRow } from '../store/tokens.ts';
import type { Grant } from './oauth-client.ts';
import { keptStamps, newStamps } from './rotation-stamps.ts';
import type { TokensParts } from './tokens-types.ts';
import type { Vault } from './vault.ts';

/** How soon a grant that could not be written is tried again, in milliseconds. */
const AGAIN_MS = 2_000;

/** How soon at the end of the process, in milliseconds. */
const AGAIN_AT_END_MS = 100;

const NOT_WRITTEN = new ServiceError(
  'wait',
  'A new access token has come, but the app cannot write it yet: its database is in trouble. It tries on by itself.',
);

type Parts = Pick<TokensParts, 'store' | 'vault' | 'pauses' | 'onRefresh' | 'onLost'>;

/** What a refresh has brought. */
export interface Received {
  grant: Grant;
  /** Of the tokens that it was asked for with, and the refresh token among them. */
  readVersion: number;
  refreshToken: string;
}

/**
 * What refreshes have brought, until it is written. The service may have ended the refresh token before it: so it is
 * written at once, and where that fails, this process tries on, whether or not anybody asks for a token. The version that
 * every write is checked against keeps it from overwriting a newer grant, so it needs no lock, nor Redis, which hears of
 * it afterwards: the other processes are told to wait, and when that is over.
 */
export class ReceivedGrants {
  readonly #parts: Parts;
  readonly #kept = new Map<string, Received>();
  /** What has kept them from being written. */
  readonly #failures = new Map<string, unknown>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(parts: Parts) {
    this.#parts = parts;
  }

  /** @returns what is kept of an instance, if its tokens are still those of then */
  find(instanceId: string, version: number): Received | undefined {
    const kept = this.#kept.get(instanceId);
    return kept?.readVersion === version ? kept : undefined;
  }

  /**
   * Writes a grant, and tells the others.
   *
   * @param row the tokens that it was asked for with
   * @returns false if another grant is newer
   * @throws whatever keeps it from being written: it is tried again by itself
   */
  async write(row: TokenRow, received: Received): Promise<boolean> {
    const instanceId = row.instance_id;
    this.#kept.set(instanceId, received);
    try {
      return await this.#settle(row, received);
    } catch (error) {
      await this.#notWritten(instanceId, error);
      throw error;
    }
  }

  /**
   * Tries on until each that is left is written, or the time is over: what is kept is lost with the process.
   *
   * @param patienceMs how long, in milliseconds
   * @throws Error when something is lost; `onLost` has been told whose it is
   */
  async close(patienceMs: number): Promise<void> {
    for (const timer of this.#timers.values()) clearTimeout(timer);
    const giveUpAt = performance.now() + patienceMs;
    const tries = [...this.#kept.keys()].map((id) => this.#tryUntil(giveUpAt, id));
    // A single try may wait for the database, or Redis, for longer than there is time.
    await Promise.race([Promise.all(tries), sleep(patienceMs, undefined, { ref: false })]);
    for (const instanceId of this.#kept.keys()) {
      this.#parts.onLost?.({ instanceId, error: this.#failures.get(instanceId) });
    }
    if (this.#kept.size > 0) throw new Error('What refreshes have brought could not be written.');
  }

  async #settle(row: TokenRow, received: Received): Promise<boolean> {
    const isNewest = await this.#replace(row, received);
    this.#forget(row.instance_id, received);
    // What Redis does not forget now, ends by itself.
    await this.#parts.pauses.end(['trouble', 'unwritten'], row.instance_id).catch(() => undefined);
    return isNewest;
  }

  async #replace(row: TokenRow, { grant, readVersion, refreshToken }: Received): Promise<boolean> {
    const { store, vault, onRefresh } = this.#parts;
    const { accessToken, accessExpiresAt, grantedAt } = grant;
    const newest = grant.refreshToken ?? refreshToken;
    const isRotated = newest !== refreshToken;
    const isWritten = await store.replace(
      {
        ...row,
        ...sealedTokens(vault, row.instance_id, { accessToken, refreshToken: newest }),
        access_expires_at: accessExpiresAt,
        refreshed_at: grantedAt,
        refreshes: row.refreshes + 1,
        ...(isRotated
          ? { ...newStamps(row.instance_id, grantedAt), rotations: row.rotations + 1 }
          : keptStamps(row, grantedAt)),
      },
      readVersion,
    );
    if (isWritten) onRefresh?.({ instanceId: row.instance_id, outcome: isRotated ? 'rotated' : 'refreshed' });
    return isWritten;
  }

  /** Others wait, however far the writing comes. */
  async #notWritten(instanceId: string, error: unknown): Promise<void> {
    this.#failures.set(instanceId, error);
    clearTimeout(this.#timers.get(instanceId));
    this.#timers.set(instanceId, setTimeout(() => void this.#writeLate(instanceId), AGAIN_MS).unref());
    await this.#parts.pauses.hold('unwritten', instanceId, NOT_WRITTEN).catch(() => undefined);
  }

  #forget(instanceId: string, received: Received): void {
    if (this.#kept.get(instanceId) !== received) return;
    this.#kept.delete(instanceId);
    this.#failures.delete(instanceId);
    clearTimeout(this.#timers.get(instanceId));
    this.#timers.delete(instanceId);
  }

  async #writeLate(instanceId: string): Promise<void> {
    try {
      await this.#tryAgain(instanceId);
    } catch (error) {
      // Whoever asked for the grant was told why.
      await this.#notWritten(instanceId, error);
    }
  }

  /** At the end: nobody is told to wait any more, as nobody else will write it. */
  async #tryUntil(giveUpAt: number, instanceId: string): Promise<void> {
    for (;;) {
      try {
        return await this.#tryAgain(instanceId);
      } catch (error) {
        this.#failures.set(instanceId, error);
        if (performance.now() >= giveUpAt) return;
      }
      await sleep(AGAIN_AT_END_MS);
    }
  }

  async #tryAgain(instanceId: string): Promise<void> {
    const kept = this.#kept.get(instanceId);
    if (kept === undefined) return;
    const row = await this.#parts.store.find(instanceId);
    if (row?.version === kept.readVersion) await this.#settle(row, kept);
    else this.#forget(instanceId, kept);
  }
}

/** Both tokens of an instance, as they are stored. */
export function sealedTokens(
  vault: Vault,
  instanceId: string,
  { accessToken, refreshToken }: { accessToken: string; refreshToken: string },
): Pick<TokenRow, 'access_token' | 'refresh_token'> {
  return {
    access_token: vault.seal(accessToken, { instanceId, purpose: 'access_token' }),
    refresh_token: vault.seal(refreshToken, { instanceId, purpose: 'refresh_token' }),
  };
}
