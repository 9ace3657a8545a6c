import { chmodSync, closeSync, openSync, statSync } from 'node:fs';

const OTHERS = 0o077;

/**
 * Sees to it that a database file, which is made if there is none, and those that SQLite keeps beside it are their
 * owner's alone: a backup that was put in its place may have come with the rights that any file gets.
 *
 * Files of another owner are left as they are, and those on a file system that knows no such rights.
 */
export function keepPrivate(path: string): void {
  closeSync(openSync(path, 'a', 0o600));
  // SQLite makes new ones with the rights of the first. By their names: closing one would end this process's locks on it.
  for (const file of [path, `${path}-wal`, `${path}-shm`]) {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined || stats.uid !== process.getuid?.() || (stats.mode & OTHERS) === 0) continue;
    try {
      chmodSync(file, stats.mode & 0o7777 & ~OTHERS);
    } catch {
      // It went away meanwhile, or cannot be changed: nothing that the app would not work without.
    }
  }
}
