import { ServiceError } from '../client/errors.ts';
import type { TokenRow } from '../store/tokens.ts';
import type { Grant } from './oauth-client.ts';
import { keptStamps, newStamps } from './rotation-stamps.ts';
import type { TokensParts } from './tokens-types.ts';
import type { Vault } from './vault.ts';

/** How soon a grant that could not be written is tried again, in milliseconds. */
const AGAIN_MS = 2_000;

const NOT_WRITTEN = new ServiceError(
  'wait',
  'A new access token has come, but the app cannot write it yet: its database is in trouble. It tries on by itself.',
);

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
  readonly #parts: Pick<TokensParts, 'store' | 'vault' | 'pauses' | 'onRefresh'>;
  readonly #kept = new Map<string, Received>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  constructor(parts: Pick<TokensParts, 'store' | 'vault' | 'pauses' | 'onRefresh'>) {
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
      await this.#notWritten(instanceId);
      throw error;
    }
  }

  /** Tries each that is left a last time: what is kept is lost with the process. */
  async close(): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((id) => this.#writeLate(id)));
    for (const timer of this.#timers.values()) clearTimeout(timer);
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
  async #notWritten(instanceId: string): Promise<void> {
    clearTimeout(this.#timers.get(instanceId));
    this.#timers.set(instanceId, setTimeout(() => void this.#writeLate(instanceId), AGAIN_MS).unref());
    await this.#parts.pauses.hold('unwritten', instanceId, NOT_WRITTEN).catch(() => undefined);
  }

  #forget(instanceId: string, received: Received): void {
    if (this.#kept.get(instanceId) !== received) return;
    this.#kept.delete(instanceId);
    clearTimeout(this.#timers.get(instanceId));
    this.#timers.delete(instanceId);
  }

  async #writeLate(instanceId: string): Promise<void> {
    const kept = this.#kept.get(instanceId);
    if (kept === undefined) return;
    try {
      const row = await this.#parts.store.find(instanceId);
      if (row?.version === kept.readVersion) await this.#settle(row, kept);
      else this.#forget(instanceId, kept);
    } catch {
      // Whoever asked for the grant was told why.
      await this.#notWritten(instanceId);
    }
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
