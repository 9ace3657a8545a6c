import { setImmediate as turn } from 'node:timers/promises';
import type { SealedTokens, TokenStore } from '../store/tokens.ts';
import { explainMissingKey } from './key-checks.ts';
import { sealedBatches } from './sealed-batches.ts';
import { type Vault, VaultError } from './vault.ts';

/** Rounds over all instances at most: more are needed only while something writes under an older key all the time. */
const MOST_ROUNDS = 5;

/** What the rounds over all tokens have found and done. */
export interface ReencryptReport {
  /** Instances whose tokens were encrypted anew. */
  renewed: number;
  /** Instances whose tokens were under the first key already. */
  current: number;
  /** Instances whose tokens cannot be opened, with the reason; they were left as they are. */
  unreadable: { instanceId: string; reason: string }[];
  /** Whether the last round was a whole one and found nothing to do. */
  isDone: boolean;
}

/**
 * Puts the tokens of every instance under the key that seals now. It may run beside the app, be killed at any moment
 * and be run again: a batch is written as a whole or not at all, and only over what it was read from, so a grant that
 * comes in meanwhile stays. What the app wrote under an older key while the pass went by is met by the next round.
 *
 * @param options.signal ends the work between two batches
 * @param options.onBatch told how many instances this round, counted from 1, has looked at so far
 */
export async function reencryptTokens(
  { store, vault }: { store: TokenStore; vault: Vault },
  options: { signal?: AbortSignal; onBatch?: (seen: number, round: number) => void } = {},
): Promise<ReencryptReport> {
  let renewed = 0;
  for (let rounds = 1; ; rounds++) {
    let seen = 0;
    const round = { stale: 0, current: 0, unreadable: [] as ReencryptReport['unreadable'] };
    for await (const rows of sealedBatches(store)) {
      // SQLite answers without one: signals would not come through before the end.
      await turn();
      if (options.signal?.aborted) break;
      const changes: { read: SealedTokens; sealed: SealedTokens }[] = [];
      for (const read of rows) {
        const result = reseal(vault, read);
        if (result === 'current') round.current++;
        else if (result instanceof VaultError) {
          const { message: reason } = await explainMissingKey(store, result);
          round.unreadable.push({ instanceId: read.instance_id, reason });
        } else changes.push({ read, sealed: result });
      }
      renewed += await store.reseal(changes);
      round.stale += changes.length;
      seen += rows.length;
      options.onBatch?.(seen, rounds);
    }
    const isDone = round.stale === 0 && options.signal?.aborted !== true;
    if (isDone || rounds === MOST_ROUNDS || options.signal?.aborted) {
      // A last round finds all of them current; those that were so before are the others.
      const current = Math.max(0, isDone ? round.current - renewed : round.current);
      return { renewed, current, unreadable: round.unreadable, isDone };
    }
  }
}

/** Opens both tokens, also those that are current: whoever drops a key relies on it. */
function reseal(vault: Vault, row: SealedTokens): SealedTokens | 'current' | VaultError {
  const { instance_id: instanceId } = row;
  const access = { instanceId, purpose: 'access_token' } as const;
  const refresh = { instanceId, purpose: 'refresh_token' } as const;
  try {
    const opened = [vault.open(row.access_token, access), vault.open(row.refresh_token, refresh)] as const;
    if (vault.isCurrent(row.access_token) && vault.isCurrent(row.refresh_token)) return 'current';
    return {
      instance_id: instanceId,
      access_token: vault.seal(opened[0], access),
      refresh_token: vault.seal(opened[1], refresh),
    };
  } catch (error) {
    if (error instanceof VaultError) return error;
    throw error;
  }
}
