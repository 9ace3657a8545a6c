import { closeSync, mkdirSync, openSync, statSync } from 'node:fs';
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
import {
  LostDatabaseError,
  type Phrase,
  RECORD_CHANGES,
  type StoreDialect,
  StoreError,
  statement,
  type WrittenRecord,
} from '../database.ts';
import type { Schema } from '../schema.ts';

/** How long SQLite itself waits for another process, in milliseconds. The event loop stands still meanwhile. */
const BUSY_TIMEOUT_MS = 20;

/** After a longer transaction, as of a handler, other processes may write for as long as it took. In milliseconds. */
const LONG_TRANSACTION_MS = 200;

/** How long queries in a row may block the event loop, in milliseconds. */
const MOST_IN_A_ROW_MS = 20;

const MOST_PREPARED = 500;

/** Rows of one statement: SQLite takes some thirty thousand values. */
const ROWS_AT_ONCE = 500;

/** 4 KB pages in the write-ahead log before they go into the file: several writes of a page become one. */
const CHECKPOINT_PAGES = 8_000;

const SEE_CREATED = statement(
  { name: 'sqlite' },
  `insert into seen (list, record, run) select list, id, :run from records
    where list = :list and change_seq >= :first and created_seq = change_seq
    on conflict (list, record) do update set run = excluded.run`,
);

/** Beginnings of two letters, after a mark of eight, have an index of their own: people type them most. */
const PREFIX_LENGTH = '10';

/** Pages of 4 KB that each batch merges in the index, in some milliseconds. SQLite's own merges block for 100 ms. */
const MERGED_PAGES = 64;

/** Tries to empty the write-ahead log while no process reads, and the pause between them, in milliseconds. */
const EMPTYING = { tries: 100, pauseMs: 50 };

const MEANINGS: readonly [RegExp, string][] = [
  [/^SQLITE_(BUSY|LOCKED)/, 'another process keeps it locked'],
  [/^SQLITE_FULL/, 'the disk is full'],
  [/^SQLITE_IOERR/, 'its file cannot be read or written, as on a full or broken disk'],
  [/^SQLITE_(CANTOPEN|READONLY|PERM|AUTH)/, 'its file or directory cannot be written'],
  [/^SQLITE_(CORRUPT|NOTADB)/, 'its file is damaged, restore a backup'],
];

/** Processes that open a new file at the same time lock each other out, and SQLite does not wait. */
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
 * transactions back; durable ones use `FULL`. `secure_delete` overwrites deleted rows in the file.
 *
 * @param handlersRun whether handlers have transactions here, which may be long
 * @throws Error when the file cannot be opened
 */
export function openSqlite(url: string, handlersRun = false): StoreDialect {
  const path = pathOf(url);
  makeFile(path);
  const { ino } = statSync(path);
  const sqlite = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS });
  // Another process may be opening the file after a crash.
  sqlite.pragma('busy_timeout = 5000');
  useWal(sqlite);
  sqlite.pragma('synchronous = NORMAL');
  sqlite.pragma('foreign_keys = ON');
  sqlite.pragma('secure_delete = ON');
  // Statements that write many rows would keep their journals in files.
  sqlite.pragma('temp_store = MEMORY');
  sqlite.pragma(`wal_autocheckpoint = ${CHECKPOINT_PAGES}`);
  sqlite.pragma(`busy_timeout = ${BUSY_TIMEOUT_MS}`);
  // SQLite's own function knows ASCII alone.
  sqlite.function('lower', { deterministic: true }, (text) => (text as string | null)?.toLowerCase() ?? null);
  return {
    name: 'sqlite',
    kysely: Object.assign(new SqliteDialect({ database: sqlite }), {
      createDriver: () => new StoreSqliteDriver(sqlite),
    }),
    nowMs: sql<number>`cast(unixepoch('subsec') * 1000 as integer)`,
    identity: sql`integer primary key autoincrement`,
    narrowTable: sql`without rowid`,
    search: {
      async create(db) {
        // The words are folded already: the tokenizer only splits at spaces.
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
        const found = sql<{ id: number }>`select search.rowid as id from search
          cross join seen on seen.list = ${list} and seen.record = search.rowid
          where search match ${query} and search.rowid > ${after} order by search.rowid limit ${limit}`;
        return (await found.execute(db)).rows.map(({ id }) => id);
      },
    },
    isAny: (column, parameter) => `${column} in (select value from json_each(${parameter}))`,
    values: (all) => JSON.stringify(all),
    writeRecords: (list, run, records) => {
      const first = records[0]?.seq;
      const queries: CompiledQuery[] = [];
      for (let at = 0; at < records.length; at += ROWS_AT_ONCE) {
        queries.push(upsertRecords(list, records.slice(at, at + ROWS_AT_ONCE)));
      }
      return first === undefined ? [] : [...queries, SEE_CREATED({ list, run, first })];
    },
    codeOf: (error) => (error instanceof Sqlite.SqliteError ? error.code : undefined),
    retryable: /^SQLITE_BUSY/,
    meanings: MEANINGS.map(([codes, meaning]) => [codes, `${meaning}: ${path}`]),
    transaction: (db, isDurable, work) =>
      db.connection().execute(async (connection) => {
        // SQLite changes this outside transactions alone.
        if (isDurable) sqlite.pragma('synchronous = FULL');
        let begunAt = Number.POSITIVE_INFINITY;
        try {
          return await connection.transaction().execute((tx) => {
            begunAt = performance.now();
            return work(tx);
          });
        } finally {
          if (isDurable) sqlite.pragma('synchronous = NORMAL');
          const heldMs = performance.now() - begunAt;
          if (handlersRun && heldMs > LONG_TRANSACTION_MS) await sleep(heldMs);
        }
      }),
    async purge(db) {
      // FTS5's `optimize` in steps: a negative number begins to merge all parts, without their deleted words.
      let pages = -MERGED_PAGES;
      const countChanges = sqlite.prepare<[], number>('select total_changes()').pluck();
      const step = async (tx: Kysely<Schema>) => {
        const before = countChanges.get() ?? 0;
        await sql`insert into search (search, rank) values ('merge', ${sql.lit(pages)})`.execute(tx);
        pages = MERGED_PAGES;
        return (countChanges.get() ?? 0) - before > 1;
      };
      while (await db.transact(step));
      for (let tries = 0; tries < EMPTYING.tries; tries++) {
        const { rows } = await sql<{ busy: number }>`pragma wal_checkpoint(truncate)`.execute(db);
        if (rows[0]?.busy === 0) return;
        await sleep(EMPTYING.pauseMs);
      }
      throw new StoreError(
        'A process reads the database without a pause: what was erased stays in the log beside its file until the app tries again.',
      );
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
    async check(db) {
      const file = statSync(path, { throwIfNoEntry: false });
      if (file?.ino !== ino) {
        const what = file === undefined ? 'is gone' : 'is another one';
        throw new LostDatabaseError(
          `The database file ${path} ${what} since this process opened it. What it writes would be lost, so it ends.`,
        );
      }
      await db.transaction().execute(async (tx) => {
        // Writes a number of the file anew.
        const version = sqlite.pragma('user_version', { simple: true });
        await sql`pragma user_version = ${sql.lit(version)}`.execute(tx);
      });
    },
  };
}

/** Makes the file and its directory, if they are missing. @throws StoreError that says what to do */
function makeFile(path: string): void {
  try {
    mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
    closeSync(openSync(path, 'a', 0o600));
  } catch (cause) {
    const { code, message } = cause as NodeJS.ErrnoException;
    const remedy =
      code === 'EISDIR'
        ? 'it is a directory: name a file in it'
        : `the app must be able to write the file and its directory (${message})`;
    throw new StoreError(`The database of DATABASE_URL, ${path}, cannot be opened: ${remedy}.`, { cause });
  }
}

/** The text is kept for each number of rows: building it takes longer than running it. */
const upserts = new Map<number, string>();

function upsertRecords(list: number, records: readonly WrittenRecord[]): CompiledQuery {
  const { length } = records;
  let text = upserts.get(length);
  if (text === undefined) {
    text = `insert into records (list, external_id, hash, change_seq, created_seq, document)
      values ${Array(length).fill('(?, ?, ?, ?, ?, ?)').join(', ')} ${RECORD_CHANGES}`;
    upserts.set(length, text);
  }
  const values = records.flatMap(({ id, hash, seq, createdSeq, text }) => [
    list,
    id,
    hash,
    seq,
    createdSeq,
    text,
  ]);
  return CompiledQuery.raw(text, values);
}

function written({ words, isBeginning }: Phrase): string {
  return `"${words.join(' ')}"${isBeginning ? ' *' : ''}`;
}

/** Prepares each statement once, begins transactions `immediate`, and lets other work of the process run. */
class StoreSqliteDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database;
  /** When the first query of this turn of the event loop began. */
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
    // A stream would keep the only connection for as long as its reader takes.
    connection.streamQuery = () => {
      throw new Error('There are no streams on SQLite: read in pages.');
    };
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
