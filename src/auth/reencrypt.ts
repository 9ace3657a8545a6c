import { setImmediate as turn } from 'node:timers/promises';
import type { EncryptedTokens, TokenStore } from '../store/tokens.ts';
import type { TokenCipher } from './token-cipher.ts';
import { encryptTokens } from './tokens.ts';

/** Instances of one batch: few enough to keep the app from writing for a moment only. */
const BATCH = 100;

/** Rounds over all instances at most. More are needed only while a process writes under an older key all the time. */
const MOST_ROUNDS = 5;

/** What the rounds over all tokens have found and done. */
interface ReencryptReport {
  /** Instances whose tokens were encrypted again. */
  renewed: number;
  /** Instances whose tokens were under the first key already. */
  current: number;
  /** Instances whose tokens cannot be decrypted, with the reason. They were left as they are. */
  unreadable: { instanceId: string; reason: string }[];
  /** Whether the last round was a whole one and found nothing to do. */
  isDone: boolean;
}

/**
 * Encrypts the tokens of every instance with the first key. It may run beside the app, be killed at any moment and be run
 * again: a batch is written as a whole or not at all, and only over what it was read from.
 *
 * @param options.signal ends the work between two batches
 * @param options.onBatch told how many instances this round, counted from 1, has looked at so far
 */
export async function reencryptTokens(
  { store, cipher }: { store: TokenStore; cipher: TokenCipher },
  options: { signal?: AbortSignal; onBatch?: (seen: number, round: number) => void } = {},
): Promise<ReencryptReport> {
  let renewed = 0;
  for (let rounds = 1; ; rounds++) {
    const round = { stale: 0, current: 0, unreadable: [] as ReencryptReport['unreadable'] };
    for (let seen = 0, after = ''; options.signal?.aborted !== true; ) {
      // SQLite answers without giving signals a turn.
      await turn();
      const rows = await store.listEncrypted(after, BATCH);
      const last = rows.at(-1);
      if (last === undefined) break;
      const changes = [];
      for (const read of rows) {
        try {
          const written = reencrypt(cipher, read);
          if (written === undefined) round.current++;
          else changes.push({ read, written });
        } catch (error) {
          round.unreadable.push({ instanceId: read.instance_id, reason: (error as Error).message });
        }
      }
      renewed += await store.reencrypt(changes);
      round.stale += changes.length;
      seen += rows.length;
      after = last.instance_id;
      options.onBatch?.(seen, rounds);
    }
    const isCutOff = options.signal?.aborted === true;
    const isDone = round.stale === 0 && !isCutOff;
    if (isDone || isCutOff || rounds === MOST_ROUNDS) {
      const current = Math.max(0, isDone ? round.current - renewed : round.current);
      return { renewed, current, unreadable: round.unreadable, isDone };
    }
  }
}

/** @returns undefined when both are current; they were decrypted all the same, as someone may drop a key next */
function reencrypt(cipher: TokenCipher, read: EncryptedTokens): EncryptedTokens | undefined {
  const { instance_id: instanceId, access_token, refresh_token } = read;
  const accessToken = cipher.decrypt(access_token, { instanceId, column: 'access_token' });
  const refreshToken = cipher.decrypt(refresh_token, { instanceId, column: 'refresh_token' });
  if (cipher.isCurrent(access_token) && cipher.isCurrent(refresh_token)) return undefined;
  return { instance_id: instanceId, ...encryptTokens(cipher, instanceId, accessToken, refreshToken) };
}

/** Says what was done and what is to be done next; names keys by their ids only. */
export function reencryptSummary(
  report: ReencryptReport,
  cipher: Pick<TokenCipher, 'keyId' | 'keyIds'>,
): string {
  const { renewed, current, unreadable, isDone } = report;
  const older = cipher.keyIds
    .filter((id) => id !== cipher.keyId)
    .map((id) => `"${id}"`)
    .join(', ');
  if (isDone && renewed + current + unreadable.length === 0) {
    return 'The database holds no tokens. If companies have installed the app, set DATABASE_URL to the database of the app.';
  }
  const lines = [
    `Encrypted again with "${cipher.keyId}": the tokens of ${renewed} instances. Already so: ${current}.`,
  ];
  if (unreadable.length > 0) {
    lines.push(
      `Left as they were, because they cannot be decrypted: ${unreadable.length}. Each goes on when its key is back, or when its company authorizes the app again.`,
      ...unreadable.map(({ instanceId, reason }) => `  ${instanceId}: ${reason}`),
    );
  }
  if (!isDone) {
    lines.push('Not done: it was ended early, or a process still encrypts with an older key. Run it again.');
  } else if (older === '') {
    lines.push('There are no older keys.');
  } else if (renewed > 0) {
    lines.push(
      `Restart every process with the new TOKEN_KEYS, run this again, and drop ${older} when it encrypts nothing any more.`,
    );
  } else {
    lines.push(
      `No token that can be decrypted needs ${older}: drop ${older} if every process runs with the new TOKEN_KEYS. Backups of the database need the keys of their day.`,
    );
  }
  return lines.join('\n');
}
