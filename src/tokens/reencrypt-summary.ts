import type { ReencryptReport } from './reencrypt.ts';

/** Says what an encryption under a new key has done, and what is to be done next; names keys by their ids only. */
export function reencryptSummary(
  report: ReencryptReport,
  keys: { sealingKeyId: string; olderKeyIds: readonly string[] },
): string {
  const { renewed, current, unreadable, isDone } = report;
  if (isDone && renewed + current + unreadable.length === 0) {
    return "The database holds no tokens. If companies have installed the app, it is not the app's: set DATABASE_URL to that of the app's other processes.";
  }
  const older = keys.olderKeyIds.map((id) => `"${id}"`).join(', ');
  const foundNone = isDone && renewed === 0;
  const lines = [
    foundNone && unreadable.length === 0
      ? `Found nothing to do: the tokens of ${current} instances are under "${keys.sealingKeyId}".`
      : `Encrypted anew under "${keys.sealingKeyId}": the tokens of ${renewed} instances; ${current} had been before.`,
  ];
  if (unreadable.length > 0) {
    lines.push(
      `Left as they were, because they cannot be opened: ${unreadable.length}. Each goes on when its key is back, or when its company authorizes the app again.`,
      ...unreadable.map(({ instanceId, reason }) => `  ${instanceId}: ${reason}`),
    );
  }
  if (!isDone) {
    lines.push('Not done: it was ended early, or a process still encrypts under an older key. Run it again.');
  } else if (older === '') {
    lines.push('There are no older keys.');
  } else if (renewed + current === 0) {
    // Other keys, or another database, than the app's would look just so.
    lines.push(
      `None of these keys opens any token. If TOKEN_KEYS and DATABASE_URL are those of the app's other processes, none needs ${older}.`,
    );
  } else {
    const drop = foundNone
      ? `No token that can be opened needs ${older}: drop ${older} if every process has been restarted with the new TOKEN_KEYS.`
      : `No token that can be opened needs ${older} any more. A process that has not been restarted with the new TOKEN_KEYS still encrypts under an older key: restart them all, run this once more, and when it encrypts none anew, drop ${older}.`;
    // Each was tried with the key that it names, if that is there, and that was proven to be the right one.
    const others = unreadable.length > 0 ? ` What cannot be opened stays so, with ${older} or without.` : '';
    lines.push(`${drop}${others} Backups of the database need the key of their day.`);
  }
  return lines.join('\n');
}
