import Sqlite from 'better-sqlite3';

/** What trouble of SQLite's means for whoever runs the app, and what they can do; by the beginnings of its codes. */
const ADVICE = [
  {
    codes: /^SQLITE_BUSY/,
    advice:
      'Another process has kept the database locked for seconds: see which one has the file open (a backup, a shell), and end it. The app goes on by itself then.',
  },
  {
    // A full disk, a quota or a limit of the file's size.
    codes: /^SQLITE_(?:FULL|IOERR_(?:WRITE|FSYNC|DIR_FSYNC|TRUNCATE|SHMSIZE))/,
    advice:
      'The database cannot grow, as its disk is full, read-only or out of order: repair it, or make room on it. The app goes on by itself then.',
  },
  {
    codes: /^SQLITE_(?:CORRUPT|NOTADB)/,
    advice:
      'The database file is damaged: end every process of the app, restore a backup as docs/operations.md says, and start again.',
  },
  {
    codes: /^SQLITE_(?:IOERR|READONLY|CANTOPEN|PERM|AUTH)/,
    advice:
      'The database file cannot be read or written: see that its disk works, and that the app’s user owns the file and its directory.',
  },
];

/** How errors begin that say what is wrong with the database, where that is over when it can be written. */
export const PASSING_TROUBLE = ADVICE.map(({ advice }) => advice).filter((advice) =>
  advice.endsWith('The app goes on by itself then.'),
);

/** Whether an error says that the file is damaged, which does not pass. */
export function isDamage(error: unknown): boolean {
  return error instanceof Sqlite.SqliteError && /^SQLITE_(?:CORRUPT|NOTADB)/.test(error.code);
}

/**
 * Puts before the message of an error of SQLite's what it means and what to do, where that is known; the error stays
 * the same otherwise.
 *
 * @returns the error that was given, whatever it is
 */
export function explainTrouble(error: unknown): unknown {
  if (!(error instanceof Sqlite.SqliteError)) return error;
  const advice = ADVICE.find(({ codes }) => codes.test(error.code))?.advice;
  // On its way up an error comes by here several times.
  if (advice !== undefined && !error.message.startsWith(advice)) {
    error.message = `${advice} (${error.code}: ${error.message})`;
  }
  return error;
}
