import { installedRows } from './installed-rows.ts';
import { isForGood, type KeptWrites } from './kept-writes.ts';
import type { Grant } from './oauth-client.ts';
import type { NewInstance, TokensParts } from './tokens-types.ts';

/** How long an install waits for its grant to be written, after a first try that failed, in milliseconds. */
const PATIENCE_MS = 5_000;

/** For a try to write it, in milliseconds: a read and a write, which wait for others. */
const TRY_MS = 7_000;

/** How long a grant may take to be stored, or to be told as one that is tried on, in milliseconds. */
export const LONGEST_STORING_MS = TRY_MS + PATIENCE_MS;

type Parts = Pick<TokensParts, 'store' | 'vault' | 'pauses' | 'instances'>;

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
   * disconnect that comes while it cannot be stored. It is written at once, whatever refresh is under way: the version that that
   * is checked against keeps it from overwriting this.
   *
   * @returns false where a newer one, or a disconnect, stays
   * @throws whatever keeps it from being written for seconds: it is tried again by itself
   */
  store(instance: NewInstance, grant: Grant & { refreshToken: string }): Promise<boolean> {
    const { store, vault, pauses, instances } = this.#parts;
    const { id, installedAt, askedAt = installedAt } = instance;
    const [row, tokens] = installedRows(vault, instance, grant);
    const cameAt = performance.now();
    let before: { generation: number | undefined } | undefined;
    const kept = this.#writes.keep(id, {
      write: async () => {
        before ??= { generation: await instances.accessGeneration(id) };
        return store.install(row, tokens, { ...before, askedAt, heldMs: performance.now() - cameAt });
      },
      // They were about the grant before. What Redis does not forget now, ends by itself.
      afterwards: () => pauses.end(['trouble', 'rejection', 'unwritten'], id),
    });
    return kept.attempt().catch((error: unknown) => {
      if (isForGood(error)) throw error;
      return kept.within(PATIENCE_MS);
    });
  }
}
