import { installedRows } from './installed-rows.ts';
import type { KeptWrites } from './kept-writes.ts';
import type { Grant } from './oauth-client.ts';
import { LOCK_MS, lockKey } from './refresh-lock.ts';
import type { NewInstance, TokensParts } from './tokens-types.ts';

/** How long an install waits for its grant to be written, after a first try that failed, in milliseconds. */
const PATIENCE_MS = 5_000;

/**
 * How long a grant may take to be stored, or to be told as one that is tried on, in milliseconds: it waits for its lock
 * as long as that waits, then holds it.
 */
export const LONGEST_STORING_MS = 3 * LOCK_MS + PATIENCE_MS;

type Parts = Pick<TokensParts, 'lock' | 'store' | 'vault' | 'pauses' | 'instances'>;

/** What installs have brought, until it is written. */
export class ReceivedInstalls {
  readonly #parts: Parts;
  readonly #writes: KeptWrites;

  constructor(parts: Parts, writes: KeptWrites) {
    this.#parts = parts;
    this.#writes = writes;
  }

  /**
   * Stores an install, in place of an older one, and makes the instance active; a newer one stays, and so does a
   * disconnect that comes before it is stored.
   *
   * @throws whatever keeps it from being written for seconds: it is tried again by itself
   */
  async store(instance: NewInstance, grant: Grant & { refreshToken: string }): Promise<void> {
    const { lock, store, vault, pauses, instances } = this.#parts;
    const [row, tokens] = installedRows(vault, instance, grant);
    const cameAt = performance.now();
    let before: { generation: number | undefined } | undefined;
    const kept = this.#writes.keep(instance.id, {
      write: async () => {
        before ??= { generation: await instances.accessGeneration(instance.id) };
        return store.install(row, tokens, { ...before, heldMs: performance.now() - cameAt });
      },
      // They were about the grant before. What Redis does not forget now, ends by itself.
      afterwards: () => pauses.end(['trouble', 'rejection', 'unwritten'], instance.id),
    });
    // Without the lock where Redis is away: it only spares a refresh, and this grant may have ended the one before.
    await lock
      .hold(lockKey(instance.id), LOCK_MS, () => kept.attempt().catch(() => undefined))
      .catch(() => undefined);
    await kept.attempt().catch(() => kept.within(PATIENCE_MS));
  }
}
