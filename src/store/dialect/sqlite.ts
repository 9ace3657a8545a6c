import { closeSync, mkdirSync, openSync } from 'node:fs';
import { dirname, resolve } from 'node:path';
import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import {
  CompiledQuery,
  type DatabaseConnection,
  type Kysely,
  SqliteDialect,
  SqliteDriver,
  sql,
} from 'kysely';
import type { Phrase, StoreDialect } from '../database.ts';
import type { Schema } from '../schema.ts';

/** How long SQLite itself waits for another process's write, in milliseconds: the event loop stands still meanwhile. */
const BUSY_TIMEOUT_MS = 20;

/** How long queries that follow each other may keep the event loop, in milliseconds: SQLite answers at once. */
const MOST_IN_A_ROW_MS = 20;

/** Statements that are kept prepared. */
const MOST_PREPARED = 500;

/** Beginnings of two letters, behind a mark of eight, have an index of their own: they are the most common. */
const PREFIX_LENGTH = '10';

/**
 * The index grows by parts, which are merged a little with each batch: so many pages of 4 KB, in some milliseconds. SQLite
 * itself would merge rarely, and for a tenth of a second.
 */
const MERGED_PAGES = 64;

/** Tries to empty the write-ahead log, while no process reads, and the pause between two, in milliseconds. */
const EMPTYING = { tries: 100, pauseMs: 50 };

/** What SQLite's errors mean. */
const MEANINGS: readonly [RegExp, string][] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'another process keeps it locked'],
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'its file cannot be read or written: the disk may be full or broken'],
  [/^SQLITE_(CANTOPEN|READONLY|PERM|AUTH)/, 'its file, or the directory of it, cannot be written'],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'its file is damaged: restore a backup'],
];

/** Processes that open a new file at once lock each other out here, which SQLite reports at once. */
function useWal(sqlite: Sqlite.Database): void {
  for (let tries = 1; ; tries++) {
    try {
      sqlite.pragma('journal_mode = WAL');
      return;
    } catch (error) {
      if (tries === 100) throw error;
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, BUSY_TIMEOUT_MS);
    }
  }
}

/** The path of a `file:` URL. */
export function pathOf(url: string): string {
  return resolve(url.replace(/^file:(\/\/)?/, ''));
}

/**
 * SQLite in one file, for the processes of one machine. With `synchronous=NORMAL` a power cut may take the last
 * transactions; what must stay is written with `FULL`. Deleted rows are overwritten in the file (`secure_delete`).
 *
 * @throws Error when the file cannot be opened
 */
export function openSqlite(url: string): StoreDialect {
  const path = pathOf(url);
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  closeSync(openSync(path, 'a', 0o600));
  const sqlite = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS });
  // Another process may be opening the file after a crash.
  sqlite.pragma('busy_timeout = 5000');
  useWal(sqlite);
  sqlite.pragma('synchronous = NORMAL');
  sqlite.pragma('foreign_keys = ON');
  sqlite.pragma('secure_delete = ON');
  // Else statements that write many rows keep their journals in files.
  sqlite.pragma('temp_store = MEMORY');
  sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  // SQLite's own knows ASCII alone.
  sqlite.function('lower', { deterministic: true }, (text) => (text as string | null)?.toLowerCase() ?? null);
  return {
    name: 'sqlite',
    kysely: new StoreSqliteDialect(sqlite),
    nowMs: sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,
    identity: sql`integer primary key autoincrement`,
    narrowTable: sql`without rowid`,
    search: {
      async create(db) {
        // The words come folded and told apart already: the tokenizer only splits at spaces.
        await sql`create virtual table search using fts5(words, content = '', contentless_delete = 1,
          tokenize = 'ascii', prefix = ${sql.lit(PREFIX_LENGTH)})`.execute(db);
        await sql`insert into search (search, rank) values ('automerge', 0), ('crisismerge', 64)`.execute(db);
      },
      async write(db, records) {
        const rows = JSON.stringify(records.map(({ record, words }) => [record, words.join(' ')]));
        await sql`insert or replace into search (rowid, words)
          select value ->> 0, value ->> 1 from json_each(${rows})`.execute(db);
        await sql`insert into search (search, rank) values ('merge', ${sql.lit(MERGED_PAGES)})`.execute(db);
      },
      async remove(db, records) {
        for (const record of records) await sql`delete from search where rowid = ${record}`.execute(db);
      },
      async find(db, list, groups, { after, limit }) {
        const query = groups.map((group) => `(${group.map(written).join(' OR ')})`).join(' AND ');
        const { rows } = await sql<{ id: number }>`
          select search.rowid as id from search
          cross join seen on seen.list = ${list} and seen.record = search.rowid
          where search match ${query} and search.rowid > ${after} order by search.rowid limit ${limit}`.execute(
          db,
        );
        return rows.map(({ id }) => id);
      },
    },
    isRetryable: (error) => codeOf(error)?.startsWith('SQLITE_BUSY') ?? false,
    explain(error) {
      const code = codeOf(error);
      const meaning = MEANINGS.find(([codes]) => code !== undefined && codes.test(code))?.[1];
      return meaning && `The database cannot be used: ${meaning} (${path}: ${(error as Error).message}).`;
    },
    transaction: (db, isDurable, work) =>
      db.connection().execute(async (connection) => {
        // Outside the transaction: it cannot be changed within one.
        if (isDurable) sqlite.pragma('synchronous = FULL');
        try {
          return await connection.transaction().execute(work);
        } finally {
          if (isDurable) sqlite.pragma('synchronous = NORMAL');
        }
      }),
    async purge(db) {
      // As `optimize` does, but in steps: a negative number begins to merge all parts, without their deleted words.
      let pages = -MERGED_PAGES;
      const countChanges = sqlite.prepare<[], number>('select total_changes()').pluck();
      const step = async (transaction: Kysely<Schema>) => {
        const before = countChanges.get() ?? 0;
        await sql`insert into search (search, rank) values ('merge', ${sql.lit(pages)})`.execute(transaction);
        pages = MERGED_PAGES;
        return (countChanges.get() ?? 0) - before > 1;
      };
      while (await db.transact(step));
      for (let tries = 0; tries < EMPTYING.tries; tries++) {
        const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(db);
        if (rows[0]?.busy === 0) return;
        await sleep(EMPTYING.pauseMs);
      }
    },
    exclusively: (db, work) =>
      db.connection().execute(async (connection) => {
        // A migration of much data may take minutes.
        sqlite.pragma('busy_timeout = 600000');
        await sql`begin immediate`.execute(connection);
        sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
        try {
          await work(connection);
          await sql`commit`.execute(connection);
        } catch (error) {
          if (sqlite.inTransaction) await sql`rollback`.execute(connection);
          throw error;
        }
      }),
    check: (db) =>
      db.connection().execute(async (connection) => {
        await connection.transaction().execute(async (transaction) => {
          // A number in the file that stays as it is.
          const version = sqlite.pragma('user_version', { simple: true });
          await sql`pragma user_version = ${sql.lit(version)}`.execute(transaction);
        });
      }),
  };
}

function codeOf(error: unknown): string | undefined {
  return error instanceof Sqlite.SqliteError ? error.code : undefined;
}

function written({ words, isBeginning }: Phrase): string {
  return `"${words.join(' ')}"${isBeginning ? ' *' : ''}`;
}

class StoreSqliteDialect extends SqliteDialect {
  readonly #sqlite: Sqlite.Database;

  constructor(sqlite: Sqlite.Database) {
    super({ database: sqlite });
    this.#sqlite = sqlite;
  }

  override createDriver(): SqliteDriver {
    return new StoreSqliteDriver(this.#sqlite);
  }
}

/** Statements are prepared once, transactions begin `immediate`, and others of the process have their turn. */
class StoreSqliteDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database;
  /** When the queries of this turn of the event loop began. */
  #turnSince: number | undefined;

  constructor(sqlite: Sqlite.Database) {
    const prepared = new Map<string, Sqlite.Statement>();
    super({
      database: {
        close: () => void sqlite.close(),
        prepare(source) {
          let statement = prepared.get(source);
          if (statement === undefined) {
            statement = sqlite.prepare(source);
            prepared.set(source, statement);
            if (prepared.size > MOST_PREPARED) prepared.delete(prepared.keys().next().value as string);
          }
          return statement;
        },
      },
    });
    this.#sqlite = sqlite;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    const connection = await super.acquireConnection();
    const now = performance.now();
    if (this.#turnSince === undefined) {
      this.#turnSince = now;
      setImmediate(() => {
        this.#turnSince = undefined;
      });
    } else if (now - this.#turnSince > MOST_IN_A_ROW_MS) await othersTurn();
    return connection;
  }

  /** A deferred transaction that reads first and writes later fails if another process wrote in between. */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(CompiledQuery.raw('begin immediate'));
  }

  /** A full disk rolls back by itself. */
  override async rollbackTransaction(connection: DatabaseConnection): Promise<void> {
    if (this.#sqlite.inTransaction) await super.rollbackTransaction(connection);
  }
}
