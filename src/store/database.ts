import { resolve } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';
import { Kysely, sql, type Transaction } from 'kysely';
import { isBusy } from './busy.ts';
import { type CopiedLog, copyLog } from './copy-log.ts';
import { checkOwnDatabase, pathOf } from './existing-file.ts';
import { logAhead } from './log-ahead.ts';
import { findSchema, isKnownMigration, migrate } from './migrate.ts';
import { type NewerSchemaError, SchemaWatch } from './newer-schema.ts';
import { OwnFile } from './own-file.ts';
import { Patience } from './patience.ts';
import { PatientDialect } from './patient-dialect.ts';
import { prepareFile } from './private-file.ts';
import type { Schema } from './schema.ts';
import { explainTrouble } from './trouble.ts';

/** How long a write waits for another process's write, in milliseconds. */
const BUSY_TIMEOUT_MS = 5_000;

/**
 * How much of that is SQLite's own waiting, in milliseconds, which keeps the thread: on the event loop next to nothing,
 * as everything there is tried again.
 */
const KEEPS_THREAD_MS = { eventLoop: 20, ofItsOwn: BUSY_TIMEOUT_MS } as const;

/** How long {@link Database.check} waits for other processes' writes, in milliseconds. */
const CHECK_MS = 1_500;

/**
 * After so many pages of 4 KB whoever commits copies the log into the database, and waits for the disk meanwhile, for a
 * quarter of a second. A thread copies it before, see {@link Database.copyLog}: so it comes to that only where there is
 * none, or it does not keep up.
 */
const CHECKPOINT_PAGES = 128_000;

/** Of a connection whose commits copy nothing. */
const NEVER = 0;

/** How soon a transaction that found another's write under way is tried again: most are over by then. */
const LOCKED_PAUSE_MS = 1;

/** How soon what does not wait by itself is tried again, in milliseconds. */
const BUSY_PAUSE_MS = 20;

type Work<T> = (transaction: Transaction<Schema>) => Promise<T>;

/**
 * The database, typed; one connection an event loop, which Kysely's queries and prepared statements share. A
 * transaction's first statement is a write: see {@link openDatabase}.
 *
 * What happens thousands of times a minute (pages) goes past Kysely: by statements that are prepared once, in
 * transactions that are over before anybody else of this process has a turn.
 */
export class Database extends Kysely<Schema> {
  /** For {@link joinDatabase}. */
  readonly url: string;
  readonly #sqlite: Sqlite.Database;
  readonly #inTransaction: Sqlite.Transaction<(work: () => unknown) => unknown>;
  readonly #doNotWait: Sqlite.Statement;
  readonly #wait: Sqlite.Statement;
  readonly #schema: SchemaWatch;
  readonly #patience: Patience;
  readonly #file: OwnFile;

  /** @param keepsThreadMs how long SQLite itself waits for another process's lock, in milliseconds */
  constructor(sqlite: Sqlite.Database, file: OwnFile, keepsThreadMs: number) {
    const patience = new Patience(BUSY_TIMEOUT_MS);
    super({ dialect: new PatientDialect(sqlite, { patience, file }) });
    this.#patience = patience;
    this.#file = file;
    this.#sqlite = sqlite;
    this.url = `file:${sqlite.name}`;
    this.#inTransaction = sqlite.transaction((work) => work());
    this.#doNotWait = sqlite.prepare('pragma busy_timeout = 0');
    this.#wait = sqlite.prepare(`pragma busy_timeout = ${keepsThreadMs}`);
    this.#wait.get();
    this.#schema = new SchemaWatch(sqlite, isKnownMigration);
  }

  /**
   * Watches whether a newer version of the app changes the schema. From that moment on nothing is read or
   * written by prepared statements; what is left for this process is to end.
   *
   * @param onNewer told once, within a second or so
   * @returns a function that ends the watch
   */
  watchSchema(onNewer: (error: NewerSchemaError) => void): () => void {
    return this.#schema.start(onNewer);
  }

  /** Copies the log into the database, and answers what is left, as {@link copyLog} does. */
  copyLog(): CopiedLog | undefined {
    try {
      return copyLog(this.#sqlite);
    } catch {
      return undefined; // As after a commit: a disk that is full is told by whoever writes.
    }
  }

  /** Prepares a statement that is run within {@link atOnce} or {@link writeAtOnce}. */
  prepare<Parameters extends unknown[], Row = unknown>(source: string): Sqlite.Statement<Parameters, Row> {
    return this.#sqlite.prepare<Parameters, Row>(source);
  }

  /**
   * Runs prepared statements that read between the transactions of others, never within one.
   *
   * @throws NewerSchemaError when the schema is a newer version's, at the latest a tenth of a second after it became so
   */
  async atOnce<T>(work: () => T): Promise<T> {
    const giveUpAt = performance.now() + BUSY_TIMEOUT_MS;
    for (;;) {
      try {
        this.#schema.checkAtTimes();
        return await this.#between(work);
      } catch (error) {
        // Readers wait for nobody, but for a moment while another process opens the file after a crash.
        if (!isBusy(error) || performance.now() >= giveUpAt) throw error;
      }
      await sleep(BUSY_PAUSE_MS);
    }
  }

  /**
   * Runs prepared statements in a transaction of their own, which holds the write lock from its beginning. While another
   * connection writes, it is tried again, and the event loop does other things.
   *
   * @param patienceMs how long, in milliseconds; by default seconds, unless somebody has just waited in vain
   * @throws when another connection writes for longer; NewerSchemaError, LostFileError: nothing of it is written then
   */
  async writeAtOnce<T>(work: () => T, patienceMs = this.#patience.ms): Promise<T> {
    const giveUpAt = performance.now() + patienceMs;
    for (;;) {
      const isLastTime = performance.now() >= giveUpAt;
      const written = await this.#between(() => this.#tryToWrite(work, isLastTime));
      if (written !== undefined) {
        this.#patience.renew();
        return written.result;
      }
      await sleep(LOCKED_PAUSE_MS);
    }
  }

  /**
   * Whether the database can be written, by a number in the file that stays as it is, and has room for more than that.
   *
   * @throws Error that says what is wrong and what to do, for whoever is on call
   */
  async check(): Promise<void> {
    this.#file.check();
    await this.writeAtOnce(() => {
      this.#sqlite.pragma(`user_version = ${this.#sqlite.pragma('user_version', { simple: true })}`);
    }, CHECK_MS);
    await this.#file.checkRoom();
  }

  async #between<T>(work: () => T): Promise<T> {
    try {
      if (!this.#sqlite.inTransaction) return work();
      return await this.connection().execute(async () => work());
    } catch (error) {
      throw this.explain(error);
    }
  }

  /** As {@link OwnFile.explain} does. */
  explain(error: unknown): unknown {
    return this.#file.explain(error);
  }

  /** Returns undefined when another connection writes just now. */
  #tryToWrite<T>(work: () => T, isLastTime: boolean): { result: T } | undefined {
    let hasBegun = false;
    this.#doNotWait.get();
    try {
      const result = this.#inTransaction.immediate(() => {
        hasBegun = true;
        this.#file.checkPlace();
        this.#schema.check();
        return work();
      });
      return { result: result as T };
    } catch (error) {
      if (hasBegun || !isBusy(error)) throw error;
      if (!isLastTime) return undefined;
      this.#patience.wearOut();
      throw error;
    } finally {
      this.#wait.get();
    }
  }

  /**
   * A transaction of queries.
   *
   * @throws NewerSchemaError when the schema is a newer version's by now, LostFileError: nothing of it is written
   */
  transact<T>(work: Work<T>): Promise<T> {
    return this.transaction().execute(this.#checked(work));
  }

  /**
   * A transaction that is on the disk when it is over: what it wrote survives a loss of power.
   *
   * @param options.inAnySchema also in a newer version's: for what would be lost otherwise
   * @throws NewerSchemaError as {@link transact} does
   */
  durably<T>(work: Work<T>, { inAnySchema = false } = {}): Promise<T> {
    return this.connection().execute(async (connection) => {
      // Before the transaction, as it cannot be changed within one.
      await sql`pragma synchronous = full`.execute(connection);
      try {
        return await connection.transaction().execute(inAnySchema ? work : this.#checked(work));
      } finally {
        await sql`pragma synchronous = normal`.execute(connection);
      }
    });
  }

  /** Looks behind the work, which has taken the write lock by its first statement. */
  #checked<T>(work: Work<T>): Work<T> {
    return async (transaction) => {
      const result = await work(transaction);
      this.#schema.check();
      return result;
    };
  }
}

/** What goes on while a database is opened. */
export interface OpenOptions {
  /** Told from time to time how long another process that migrates it has been waited for, in milliseconds. */
  onWait?: (waitedMs: number) => void;
  /** Told when there was no database of the app, and this process has made one. */
  onNew?: () => void;
  /**
   * Looks at a database of an older version, as it is, before it is migrated, which ends the processes of that version:
   * throws when this one could not take their place.
   */
  beforeMigration?: (db: Database) => Promise<unknown>;
}

/**
 * Opens (and creates) the SQLite file of a `file:` URL and brings its schema up to date.
 *
 * Write-ahead logging, so that the dashboard reads while a page is written. With `synchronous=NORMAL` a loss of power
 * may take the last pages, records and cursor together, and they are read again; what must not be lost (a refresh
 * token that the service has replaced) is written by {@link Database.durably}. A transaction that reads first and
 * writes later fails at once when another process wrote in between, whatever the busy timeout: so every transaction
 * here begins with a write. What is deleted or replaced is overwritten in the file (`secure_delete`).
 *
 * @throws when the file cannot be opened or migrated, is mounted by itself, or has a further name
 */
export async function openDatabase(url: string, options: OpenOptions = {}): Promise<Database> {
  const path = pathOf(url);
  prepareFile(path);
  const db = await connect(path, CHECKPOINT_PAGES, KEEPS_THREAD_MS.eventLoop);
  try {
    if ((await findSchema(db)) === 'older') await options.beforeMigration?.(db);
    await migrate(db, options);
  } catch (error) {
    await db.destroy();
    throw error;
  }
  return db;
}

/**
 * Opens the SQLite file of a `file:` URL as {@link openDatabase} does, for a command that is about what is in it.
 *
 * @throws Error that says what to do when it is no database of this app: none is made, and nothing is changed
 */
export async function openExistingDatabase(url: string, options?: OpenOptions): Promise<Database> {
  checkOwnDatabase(resolve(pathOf(url)));
  return openDatabase(url, options);
}

/**
 * Opens the SQLite file of a `file:` URL once more, in a thread: each event loop has one connection of its own.
 *
 * @throws when there is no such file
 */
export function joinDatabase(url: string): Promise<Database> {
  return connect(pathOf(url), NEVER, KEEPS_THREAD_MS.ofItsOwn);
}

async function connect(path: string, checkpointPages: number, keepsThreadMs: number): Promise<Database> {
  try {
    const sqlite = new Sqlite(path, { timeout: BUSY_TIMEOUT_MS, fileMustExist: true });
    await logAhead(sqlite, BUSY_TIMEOUT_MS);
    sqlite.pragma('synchronous = NORMAL');
    sqlite.pragma(`wal_autocheckpoint = ${checkpointPages}`);
    sqlite.pragma('foreign_keys = ON');
    sqlite.pragma('secure_delete = ON');
    return new Database(sqlite, new OwnFile(path), keepsThreadMs);
  } catch (error) {
    throw explainTrouble(error);
  }
}
