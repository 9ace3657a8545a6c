import { existsSync, readFileSync, realpathSync } from 'node:fs';

/** The mounts that this process sees, one a line (proc(5)); Linux has it, and whatever runs containers does. */
const TABLE = '/proc/self/mountinfo';

/** Which of the fields of a line is the place of the mount. */
const PLACE = 4;

/** The places of the mounts in such a table, which writes blanks and the like as three octal digits behind a backslash. */
export function mountPlaces(table: string): Set<string> {
  const places = table.split('\n').map((line) => line.split(' ')[PLACE] ?? '');
  return new Set(
    places.map((place) =>
      place.replace(/\\([0-7]{3})/g, (_all, octal: string) =>
        String.fromCodePoint(Number.parseInt(octal, 8)),
      ),
    ),
  );
}

/**
 * Refuses a database file that is mounted by itself, as into a container. SQLite keeps its log beside the file, where
 * each container would have one of its own, and none would see what another has written: together they damage the file.
 *
 * @param table of the mounts, where it is not this process's own
 * @throws Error that says what to do
 */
export function refuseMountedFile(path: string, table = ownTable()): void {
  if (!existsSync(path) || !mountPlaces(table).has(realpathSync(path))) return;
  throw new Error(
    `The database file ${path} is mounted by itself, without what SQLite keeps beside it: processes that see it elsewhere would damage it. Mount its directory instead, and start again.`,
  );
}

function ownTable(): string {
  try {
    return readFileSync(TABLE, 'utf8');
  } catch {
    return ''; // Another operating system.
  }
}
