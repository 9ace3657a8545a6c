import type Sqlite from 'better-sqlite3';

/** An eighth of a gigabyte. */
const LONG_LOG_PAGES = 32_000;

/** Writers may wait while so many are copied: some milliseconds. */
const FEW_PAGES = 2_000;

/** How often what has come meanwhile is copied before writers have to wait, however much that is. */
const MOST_ROUNDS = 4;

/** How often a moment is looked for in which nobody writes. */
const MOST_TRIES = 10;

/**
 * Copies what is in the log into the database, for a thread in which nobody waits for it; others write meanwhile. The next
 * write begins the log anew when all of it is copied, which it never is while others go on writing: so they have to wait
 * while the last of a long log is copied, and the disk takes all of it.
 *
 * @param longLogPages from so many pages of 4 KB on, the log is to begin anew
 * @throws when the disk is full, and the like: the log keeps what it has
 */
export function copyLog(sqlite: Sqlite.Database, longLogPages = LONG_LOG_PAGES): void {
  let { log: pages } = copy(sqlite, 'passive');
  if (pages < longLogPages) return;
  for (let round = 1, more = pages; more > FEW_PAGES && round < MOST_ROUNDS; round++) {
    const before = pages;
    pages = copy(sqlite, 'passive').log;
    more = pages - before;
  }
  // To wait for those who read what was before, SQLite would keep writers waiting as long: the next time will do.
  const timeout = sqlite.pragma('busy_timeout', { simple: true });
  sqlite.pragma('busy_timeout = 0');
  try {
    for (let tries = 0; tries < MOST_TRIES && copy(sqlite, 'full').busy === 1; ) tries++;
  } finally {
    sqlite.pragma(`busy_timeout = ${timeout}`);
  }
}

/** @returns how many pages the log had when that began, and whether somebody was in the way */
function copy(sqlite: Sqlite.Database, mode: 'passive' | 'full'): { log: number; busy: number } {
  const [done] = sqlite.pragma(`wal_checkpoint(${mode})`) as { log: number; busy: number }[];
  return done ?? { log: 0, busy: 0 };
}
