import type Sqlite from 'better-sqlite3';

/** An eighth of a gigabyte. */
const LONG_LOG_PAGES = 32_000;

/** Writers may wait while so many are copied: some milliseconds. */
const FEW_PAGES = 2_000;

/** How often what has come meanwhile is copied before writers have to wait, however much that is. */
const MOST_ROUNDS = 4;

/**
 * How long it waits for a moment in which nobody writes, and for those who read what was before, in milliseconds: writers
 * wait meanwhile. If that was in vain, the next time will do.
 */
const PATIENCE_MS = 100;

/**
 * Copies what is in the log into the database, for a thread in which nobody waits for it; others write meanwhile. The next
 * write begins the log anew when all of it is copied, which it never is while others go on writing: so they have to wait
 * while the last of a long log is copied, and the disk takes all of it.
 *
 * @param longLogPages from so many pages of 4 KB on, the log is to begin anew
 * @throws when the disk is full, and the like: the log keeps what it has
 */
export function copyLog(sqlite: Sqlite.Database, longLogPages = LONG_LOG_PAGES): void {
  let pages = copy(sqlite, 'passive');
  if (pages < longLogPages) return;
  for (let round = 1, more = pages; more > FEW_PAGES && round < MOST_ROUNDS; round++) {
    const before = pages;
    pages = copy(sqlite, 'passive');
    more = pages - before;
  }
  const timeout = sqlite.pragma('busy_timeout', { simple: true });
  sqlite.pragma(`busy_timeout = ${PATIENCE_MS}`);
  try {
    copy(sqlite, 'full');
  } finally {
    sqlite.pragma(`busy_timeout = ${timeout}`);
  }
}

/** @returns how many pages the log had when that began */
function copy(sqlite: Sqlite.Database, mode: 'passive' | 'full'): number {
  const [done] = sqlite.pragma(`wal_checkpoint(${mode})`) as { log: number }[];
  return done?.log ?? 0;
}
