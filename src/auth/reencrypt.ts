import { setImmediate as turn } from 'node:timers/promises';
import type { EncryptedTokens, TokenStore } from '../store/token-table.ts';
import type { TokenCipher } from './token-cipher.ts';
import { encryptTokens } from './tokens.ts';

/** Instances of one batch. The batch is one transaction, so the app waits for a moment only. */
const BATCH = 100;

interface ReencryptReport {
  /** Instances whose tokens this run encrypted again. */
  renewed: number;
  /** Instances whose tokens the first key had encrypted before. */
  current: number;
  /** Instances whose tokens cannot be decrypted, with the reason. The run left them unchanged. */
  unreadable: { instanceId: string; reason: string }[];
  /** Whether the run saw every instance and stored every change. */
  isDone: boolean;
}

/**
 * Encrypts the tokens of every instance with the first key. It may run beside the app, and may be killed and run again: a
 * batch is one transaction, and overwrites no tokens that changed meanwhile.
 *
 * @param options.signal ends the work between two batches
 * @param options.onBatch called with the number of instances checked so far
 */
export async function reencryptTokens(
  { store, cipher }: { store: TokenStore; cipher: TokenCipher },
  options: { signal?: AbortSignal; onBatch?: (checked: number) => void } = {},
): Promise<ReencryptReport> {
  const report: ReencryptReport = { renewed: 0, current: 0, unreadable: [], isDone: false };
  let changed = 0;
  let checked = 0;
  for (let after = ''; options.signal?.aborted !== true; ) {
    // SQLite answers without giving signals a turn.
    await turn();
    const rows = await store.listEncrypted(after, BATCH);
    const last = rows.at(-1);
    if (last === undefined) return { ...report, isDone: report.renewed === changed };
    const changes = [];
    for (const read of rows) {
      try {
        const written = reencrypt(cipher, read);
        if (written === undefined) report.current++;
        else changes.push({ read, written });
      } catch (error) {
        report.unreadable.push({ instanceId: read.instance_id, reason: (error as Error).message });
      }
    }
    report.renewed += await store.reencrypt(changes);
    changed += changes.length;
    checked += rows.length;
    after = last.instance_id;
    options.onBatch?.(checked);
  }
  return report;
}

/** @returns undefined when both are current. Decrypts them first: the operator may drop a key next. */
function reencrypt(cipher: TokenCipher, read: EncryptedTokens): EncryptedTokens | undefined {
  const { instance_id: instanceId, access_token, refresh_token } = read;
  const accessToken = cipher.decrypt(access_token, { instanceId, column: 'access_token' });
  const refreshToken = cipher.decrypt(refresh_token, { instanceId, column: 'refresh_token' });
  if (cipher.isCurrent(access_token) && cipher.isCurrent(refresh_token)) return undefined;
  return { instance_id: instanceId, ...encryptTokens(cipher, instanceId, accessToken, refreshToken) };
}

/** Says what the run did and what to do next. Names keys by their ids only. */
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
      `Left as they were, because they cannot be decrypted: ${unreadable.length}. Put the key back, or let the company authorize the app again.`,
      ...unreadable.map(({ instanceId, reason }) => `  ${instanceId}: ${reason}`),
    );
  }
  if (!isDone) {
    lines.push('Not done: the command ended early, or tokens changed meanwhile. Run it again.');
  } else if (older === '') {
    lines.push('There are no older keys.');
  } else if (renewed > 0) {
    lines.push(
      `Restart every process with the new TOKEN_KEYS, run this again, and drop ${older} when it finds nothing to encrypt.`,
    );
  } else {
    lines.push(
      `No token that can be decrypted needs ${older}: drop ${older} if every process runs with the new TOKEN_KEYS. Backups of the database need the keys of their day.`,
    );
  }
  return lines.join('\n');
}
