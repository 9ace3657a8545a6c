import { setTimeout as sleep } from 'node:timers/promises';
import type Sqlite from 'better-sqlite3';
import { type CompiledQuery, type DatabaseConnection, SqliteDialect, SqliteDriver } from 'kysely';
import { isBusy } from './busy.ts';

/** How soon a query that found another process's write under way is tried again, in milliseconds. */
const PAUSE_MS = 5;

/** Who asks for the write lock by name waits in a way of its own. */
const ASKS_FOR_LOCK = /^\s*begin immediate/i;

interface PatientOptions {
  /** How long a query waits, in milliseconds. */
  patienceMs: number;
  /** Given every error that a query ends with; what it returns is thrown. */
  explain(error: unknown): unknown;
}

/**
 * SQLite for Kysely, but for one thing: while another process writes, a query is tried again, and the event loop does
 * other things. SQLite's own way of waiting would keep it, and with it the health checks and the locks of all jobs. A
 * transaction of the app begins with its first write, so that nothing is lost when that one is tried again.
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
  readonly #options: PatientOptions;
  #connection: DatabaseConnection | undefined;

  constructor(sqlite: Sqlite.Database, options: PatientOptions) {
    super({ database: sqlite });
    this.#options = options;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    this.#connection ??= patient(await super.acquireConnection(), this.#options);
    return this.#connection;
  }
}

function patient(connection: DatabaseConnection, options: PatientOptions): DatabaseConnection {
  const { patienceMs, explain } = options;
  return {
    async executeQuery<Row>(query: CompiledQuery) {
      const giveUpAt = performance.now() + patienceMs;
      for (;;) {
        try {
          return await connection.executeQuery<Row>(query);
        } catch (error) {
          const isOver = performance.now() >= giveUpAt || ASKS_FOR_LOCK.test(query.sql);
          if (isOver || !isBusy(error)) throw explain(error);
        }
        await sleep(PAUSE_MS);
      }
    },
    streamQuery: (query, chunkSize) => connection.streamQuery(query, chunkSize),
  };
}
