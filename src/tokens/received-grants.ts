import type { KeptWrite, KeptWrites } from './kept-writes.ts';
import type { Grant } from './oauth-client.ts';
import { keptStamps, newStamps } from './rotation-stamps.ts';
import { sealedTokens } from './sealed-tokens.ts';
import type { TokensParts } from './tokens-types.ts';

type Parts = Pick<TokensParts, 'store' | 'vault' | 'pauses' | 'onRefresh'>;

/** What a refresh has brought. */
export interface Received {
  grant: Grant;
  /** Of the tokens that it was asked for with, and the refresh token among them. */
  readVersion: number;
  refreshToken: string;
}

/**
 * What refreshes have brought, until it is written. The version that every write is checked against keeps it from
 * overwriting a newer grant, so it needs no lock, nor Redis, which hears of it afterwards: the other processes are told
 * to wait, and when that is over.
 */
export class ReceivedGrants {
  readonly #parts: Parts;
  readonly #writes: KeptWrites;
  readonly #kept = new Map<string, { received: Received; write: KeptWrite }>();

  constructor(parts: Parts, writes: KeptWrites) {
    this.#parts = parts;
    this.#writes = writes;
  }

  /** @returns what is kept of an instance, if its tokens are still those of then */
  find(instanceId: string, version: number): Received | undefined {
    const received = this.#kept.get(instanceId)?.received;
    return received?.readVersion === version ? received : undefined;
  }

  /**
   * Writes a grant, and tells the others.
   *
   * @returns false if another grant is newer
   * @throws whatever keeps it from being written: it is tried again by itself
   */
  async write(instanceId: string, received: Received): Promise<boolean> {
    const known = this.#kept.get(instanceId);
    const write = known?.received === received ? known.write : this.#keep(instanceId, received);
    return write.attempt();
  }

  #keep(instanceId: string, received: Received): KeptWrite {
    const write = this.#writes.keep(instanceId, {
      write: () => this.#replace(instanceId, received),
      // What Redis does not forget now, ends by itself.
      afterwards: () => this.#parts.pauses.end(['trouble', 'unwritten'], instanceId),
    });
    this.#kept.set(instanceId, { received, write });
    void write.written.then(() => {
      if (this.#kept.get(instanceId)?.received === received) this.#kept.delete(instanceId);
    });
    return write;
  }

  async #replace(instanceId: string, { grant, readVersion, refreshToken }: Received): Promise<boolean> {
    const { store, vault, onRefresh } = this.#parts;
    const row = await store.find(instanceId);
    if (row?.version !== readVersion) return false;
    const { accessToken, accessExpiresAt, grantedAt } = grant;
    const newest = grant.refreshToken ?? refreshToken;
    const isRotated = newest !== refreshToken;
    const isWritten = await store.replace(
      {
        ...row,
        ...sealedTokens(vault, instanceId, { accessToken, refreshToken: newest }),
        access_expires_at: accessExpiresAt,
        refreshed_at: grantedAt,
        refreshes: row.refreshes + 1,
        ...(isRotated
          ? { ...newStamps(instanceId, grantedAt), rotations: row.rotations + 1 }
          : keptStamps(row, grantedAt)),
      },
      readVersion,
    );
    if (isWritten) onRefresh?.({ instanceId, outcome: isRotated ? 'rotated' : 'refreshed' });
    return isWritten;
  }
}
