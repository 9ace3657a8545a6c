import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import type Sqlite from 'better-sqlite3';
import { CompiledQuery, type DatabaseConnection, SqliteDialect, SqliteDriver } from 'kysely';
import { isBusy } from './busy.ts';
import type { OwnFile } from './own-file.ts';
import type { Patience } from './patience.ts';

/** How soon a query that found another process's write under way is tried again, in milliseconds. */
const PAUSE_MS = 5;

/** How long queries may keep the event loop that follow each other, in milliseconds. */
const MOST_IN_A_ROW_MS = 20;

/** Readers get through beside a writer: that they did says nothing of the lock. */
const WRITES: ReadonlySet<string> = new Set(['InsertQueryNode', 'UpdateQueryNode', 'DeleteQueryNode']);

/**
 * Every transaction takes the write lock as it begins, or does not begin: whoever waits for the lock does so without the
 * connection, which others of the process read by meanwhile. Within a transaction that waits they would see to it that it
 * goes on from what they have read, and finds that replaced, until it gives up.
 */
const BEGIN = CompiledQuery.raw('begin immediate');

/** As Kysely and the migrations ask for it. */
const ROLLBACK = 'rollback';

interface PatientOptions {
  /** How long a query waits. */
  patience: Patience;
  /** How long SQLite itself waits for another process's lock, in milliseconds, but for that of a transaction. */
  keepsThreadMs: number;
  /** Given every error that a query ends with; one that writes is tried only while the file is in its place. */
  file: OwnFile;
}

/**
 * SQLite for Kysely, but for three things. While another process writes, a query is tried again, and the event loop does
 * other things. SQLite's own way of waiting would keep it, and with it the health checks and the locks of all jobs.
 *
 * And where SQLite has rolled back by itself, as when the disk is full at a commit, rolling back is done already: it
 * would fail, and its error would stand in the place of the one that says what is wrong.
 *
 * And SQLite answers at once: of thousands of queries that wait for the connection, each would go on to the next without
 * anything else having a turn, not even the answer of the service that one of them is to write.
 */
export class PatientDialect extends SqliteDialect {
  readonly #sqlite: Sqlite.Database;
  readonly #options: PatientOptions;

  constructor(sqlite: Sqlite.Database, options: PatientOptions) {
    super({ database: sqlite });
    this.#sqlite = sqlite;
    this.#options = options;
  }

  override createDriver(): SqliteDriver {
    return new PatientDriver(this.#sqlite, this.#options);
  }
}

class PatientDriver extends SqliteDriver {
  readonly #sqlite: Sqlite.Database;
  readonly #options: PatientOptions;
  #connection: DatabaseConnection | undefined;
  /** When the queries of this turn of the event loop began. */
  #turnSince: number | undefined;

  constructor(sqlite: Sqlite.Database, options: PatientOptions) {
    super({ database: sqlite });
    this.#sqlite = sqlite;
    this.#options = options;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#connection ??= patient(await super.acquireConnection(), this.#sqlite, this.#options);
    const now = performance.now();
    if (this.#turnSince === undefined) {
      this.#turnSince = now;
      setImmediate(() => {
        this.#turnSince = undefined;
      });
    } else if (now - this.#turnSince > MOST_IN_A_ROW_MS) await othersTurn();
    return this.#connection;
  }

  /** @throws the error of a database that another process has locked, at once */
  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    this.#sqlite.pragma('busy_timeout = 0');
    // SQLite has answered when this returns.
    const begun = connection.executeQuery(BEGIN);
    this.#sqlite.pragma(`busy_timeout = ${this.#options.keepsThreadMs}`);
    await begun;
  }
}

function patient(
  connection: DatabaseConnection,
  sqlite: Sqlite.Database,
  { patience, file }: PatientOptions,
): DatabaseConnection {
  return {
    async executeQuery<Row>(query: CompiledQuery) {
      if (query.sql === ROLLBACK && !sqlite.inTransaction) return { rows: [] };
      const isWrite = query === BEGIN || WRITES.has(query.query.kind);
      const giveUpAt = performance.now() + patience.ms;
      for (;;) {
        try {
          if (isWrite) file.checkPlace();
          const result = await connection.executeQuery<Row>(query);
          if (isWrite) patience.renew();
          return result;
        } catch (error) {
          // Whoever asks for the write lock waits for it in a way of its own.
          if (!isBusy(error) || query.sql === BEGIN.sql) throw file.explain(error);
          if (performance.now() >= giveUpAt) {
            patience.wearOut();
            throw file.explain(error);
          }
        }
        await sleep(PAUSE_MS);
      }
    },
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
  };
}
