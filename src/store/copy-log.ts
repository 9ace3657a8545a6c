import type Sqlite from 'better-sqlite3';

/** An eighth of a gigabyte. */
const LONG_LOG_PAGES = 32_000;

/** Writers may wait while so many are copied: some milliseconds. */
const FEW_PAGES = 2_000;

/** How often what has come meanwhile is copied before writers have to wait, however much that is. */
const MOST_ROUNDS = 4;

/** How often a moment is looked for in which nobody writes. */
const MOST_TRIES = 10;

/** What the log is after it was copied. */
export interface CopiedLog {
  /** How long it is, in pages of 4 KB. */
  pages: number;
  /** Whether some of it could not be copied, as somebody still reads what was before. */
  isKept: boolean;
}

/**
 * Copies what is in the log into the database, for a thread in which nobody waits for it; others write meanwhile. The next
 * write begins the log anew when all of it is copied, which it never is while others go on writing: so they have to wait
 * while the last of a long log is copied, and the disk takes all of it.
 *
 * @param longLogPages from so many pages of 4 KB on, the log is to begin anew
 * @returns undefined when another connection copies it just now
 * @throws when the disk is full, and the like: the log keeps what it has
 */
export function copyLog(sqlite: Sqlite.Database, longLogPages = LONG_LOG_PAGES): CopiedLog | undefined {
  let copied = copy(sqlite, 'passive');
  if (copied.log < longLogPages) return toCopied(copied);
  for (let round = 1, more = copied.log; more > FEW_PAGES && round < MOST_ROUNDS; round++) {
    const before = copied.log;
    copied = copy(sqlite, 'passive');
    more = copied.log - before;
  }
  // To wait for those who read what was before, SQLite would keep writers waiting as long: the next time will do.
  const timeout = sqlite.pragma('busy_timeout', { simple: true });
  sqlite.pragma('busy_timeout = 0');
  try {
    for (let tries = 0, isBusy = true; tries < MOST_TRIES && isBusy; tries++) {
      copied = copy(sqlite, 'full');
      isBusy = copied.busy === 1;
    }
  } finally {
    sqlite.pragma(`busy_timeout = ${timeout}`);
  }
  return toCopied(copied);
}

/** How many pages the log had when that began, how many of them are copied, and whether somebody was in the way. */
interface Checkpoint {
  log: number;
  checkpointed: number;
  busy: number;
}

function copy(sqlite: Sqlite.Database, mode: 'passive' | 'full'): Checkpoint {
  const [done] = sqlite.pragma(`wal_checkpoint(${mode})`) as Checkpoint[];
  return done ?? { log: 0, checkpointed: 0, busy: 0 };
}

/** SQLite counts -1 pages where it has not looked, as another connection copies. */
function toCopied({ log, checkpointed }: Checkpoint): CopiedLog | undefined {
  return log < 0 ? undefined : { pages: log, isKept: checkpointed < log };
}
