import { lchownSync, lstatSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

const ROOT = 0;

/** Has a file that this process has just made belong to whom its directory belongs to, if root is at work. */
export function giveToOwnerOfDir(path: string): void {
  giveAway(path, dirname(path));
}

/** Links are not followed: their owner may have others of root's files behind them. */
function giveAway(path: string, like: string): void {
  if (process.geteuid?.() !== ROOT) return;
  const owner = statSync(like, { throwIfNoEntry: false });
  const now = lstatSync(path, { throwIfNoEntry: false });
  if (owner === undefined || now === undefined || now.uid === owner.uid) return;
  try {
    lchownSync(path, owner.uid, owner.gid);
  } catch {
    // Root in a container may not be allowed to, or it went away meanwhile.
  }
}
