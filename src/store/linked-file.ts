import { statSync } from 'node:fs';
import { BESIDE, besideDatabase } from './own-file.ts';

/**
 * Refuses a database file that has a further name (a hard link), or one of those that SQLite keeps beside it. Each name
 * has a log of its own beside it: processes that know the file by different names do not see what the others have
 * written, and damage it; so does one that comes later, by a name beside which an old log was left.
 *
 * A process that runs already goes on when a name is added: none starts by that one, nor by its own.
 *
 * @throws Error that says what to do
 */
export function refuseLinkedFile(path: string): void {
  const files = ['', ...BESIDE].map((suffix) => besideDatabase(path, suffix));
  const linked = files.filter((file) => {
    const stats = statSync(file, { throwIfNoEntry: false });
    return stats?.isFile() && stats.nlink > 1;
  });
  if (linked.length === 0) return;
  const copies = linked.map((file) => {
    const [old, own] = [quoted(file), quoted(`${file}-own`)];
    return `cp -p ${old} ${own} && mv ${own} ${old}`;
  });
  throw new Error(
    `The database file ${path} has a further name (a hard link, as “cp -al” and “ln” make it), or one of those beside it has: processes that know it by different names would damage it. ` +
      'Nor is the other one a backup, as it changes with this one. ' +
      `End every process of the app, make this one a file of its own, and start again:\n${copies.join(' &&\n')}`,
  );
}

/** For a shell, whatever the path holds. */
function quoted(path: string): string {
  return `'${path.replaceAll("'", "'\\''")}'`;
}
