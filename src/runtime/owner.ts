import { lchownSync, lstatSync, mkdirSync, statSync } from 'node:fs';
import { dirname } from 'node:path';

const ROOT = 0;

/**
 * Makes a directory that belongs to a file, whose name it has with a word behind: `app.db-workers`. Where root makes it,
 * or made it before, it is that of the file's owner, as SQLite does with what it makes beside a database: one start as
 * root must not take it away from the app's user.
 *
 * @throws when it cannot be made
 */
export function makeDirBeside(dir: string): void {
  mkdirSync(dir, { recursive: true, mode: 0o700 });
  giveAway(dir, dir.replace(/-[a-z]+$/, ''));
}

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
