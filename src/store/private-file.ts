import { chmodSync, closeSync, mkdirSync, openSync, type Stats, statSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { isSqlite, refuseAnotherPrograms } from './existing-file.ts';
import { refuseLinkedFile } from './linked-file.ts';
import { refuseMountedFile } from './mounted-file.ts';
import { BESIDE, besideDatabase } from './own-file.ts';

const OTHERS = 0o077;

/**
 * Makes a database file and its directory where there are none, and keeps both private.
 *
 * @throws Error that says what to do when the path is no file's, the file can be neither opened nor made, it cannot be
 *   shared with other processes, or is another program's: it is left as it is then
 */
export function prepareFile(path: string): void {
  refuseOthers(path);
  orExplain(path, () => mkdirSync(dirname(path), { recursive: true, mode: 0o700 }));
  refuseMountedFile(path);
  refuseLinkedFile(path);
  orExplain(path, () => closeSync(openSync(path, 'a+', 0o600)));
  refuseAnotherPrograms(path);
  // What is something else, to which a wrong DATABASE_URL leads, stays as it is.
  if (statSync(path).size === 0 || isSqlite(path)) keepPrivate(path);
}

function orExplain(path: string, prepare: () => void): void {
  try {
    prepare();
  } catch (error) {
    throw new Error(
      `The database file ${path} can be neither opened nor made: ${error instanceof Error ? error.message : error}. See to it that the app’s user may write there, or set DATABASE_URL to another file, and start again.`,
      { cause: error },
    );
  }
}

/**
 * Before anything else: a volume's directory would be taken for a file that is mounted by itself, and a device such as
 * /dev/null would be made private, to the harm of all that use it.
 */
function refuseOthers(path: string): void {
  const found = lookAt(path);
  if (path.endsWith('/') || found?.isDirectory()) {
    throw new Error(
      `DATABASE_URL leads to a directory, not to a file: put the file’s name behind it, as in file:${join(path, 'app.db')}, and start again.`,
    );
  }
  if (found === undefined || found.isFile()) return;
  throw new Error(
    `DATABASE_URL leads to ${path}, which is a device, a pipe or a socket, not a file: set it to a file of the app’s own, and start again.`,
  );
}

function lookAt(path: string): Stats | undefined {
  try {
    return statSync(path);
  } catch {
    // There is nothing yet, or nothing that this user may look at.
    return undefined;
  }
}

/**
 * Sees to it that a database file, and those that SQLite keeps beside it, are their owner's alone: a backup that was put
 * in its place may have come with the rights that any file gets.
 *
 * Files of another owner are left as they are, and those on a file system that knows no such rights.
 */
function keepPrivate(path: string): void {
  // SQLite makes new ones with the rights of the first. By their names: closing one would end this process's locks on it.
  for (const file of [path, ...BESIDE.map((suffix) => besideDatabase(path, suffix))]) {
    const stats = statSync(file, { throwIfNoEntry: false });
    if (stats === undefined || stats.uid !== process.getuid?.() || (stats.mode & OTHERS) === 0) continue;
    try {
      chmodSync(file, stats.mode & 0o7777 & ~OTHERS);
    } catch {
      // It went away meanwhile, or cannot be changed: nothing that the app would not work without.
    }
  }
}
