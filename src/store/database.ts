import { setTimeout as sleep } from 'node:timers/promises';
import type Sqlite from 'better-sqlite3';
import { Kysely, sql, type Transaction } from 'kysely';
import { isBusy } from './busy.ts';
import { type CopiedLog, copyLog } from './copy-log.ts';
import { isKnownMigration } from './migrate.ts';
import { NewerSchemaError, SchemaWatch } from './newer-schema.ts';
import type { OwnFile } from './own-file.ts';
import { Patience } from './patience.ts';
import { PatientDialect } from './patient-dialect.ts';
import type { Schema } from './schema.ts';

/** How long a write waits for another process's write, in milliseconds. */
export const BUSY_TIMEOUT_MS = 5_000;

/** How long {@link Database.check} waits for other processes' writes, in milliseconds. */
const CHECK_MS = 1_500;

/** How soon a transaction that found another's write under way is tried again: most are over by then. */
const LOCKED_PAUSE_MS = 1;

/** How soon what does not wait by itself is tried again, in milliseconds. */
const BUSY_PAUSE_MS = 20;

type Work<T> = (transaction: Transaction<Schema>) => Promise<T>;

/**
 * The database, typed; one connection an event loop, which Kysely's queries and prepared statements share. A
 * transaction has the write lock from its beginning: see `openDatabase`.
 *
 * What happens thousands of times a minute (pages) goes past Kysely: by statements that are prepared once, in
 * transactions that are over before anybody else of this process has a turn.
 */
export class Database extends Kysely<Schema> {
  /** For `joinDatabase`. */
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
    super({ dialect: new PatientDialect(sqlite, { patience, keepsThreadMs, file }) });
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
    return this.#inTurn(this.#checked(work), (checked) => this.transaction().execute(checked));
  }

  /**
   * A transaction that is on the disk when it is over: what it wrote survives a loss of power.
   *
   * @param options.inAnySchema also in a newer version's: for what would be lost otherwise
   * @throws NewerSchemaError as {@link transact} does
   */
  durably<T>(work: Work<T>, { inAnySchema = false } = {}): Promise<T> {
    return this.#inTurn(inAnySchema ? work : this.#checked(work), (begun) =>
      this.connection().execute(async (connection) => {
        // Before the transaction, as it cannot be changed within one.
        await sql`pragma synchronous = full`.execute(connection);
        try {
          return await connection.transaction().execute(begun);
        } finally {
          await sql`pragma synchronous = normal`.execute(connection);
        }
      }),
    );
  }

  /** Tries to begin a transaction until another process's write is over; others have the connection in between. */
  async #inTurn<T>(work: Work<T>, run: (work: Work<T>) => Promise<T>): Promise<T> {
    const giveUpAt = performance.now() + this.#patience.ms;
    for (;;) {
      const isLastTime = performance.now() >= giveUpAt;
      let hasBegun = false;
      try {
        return await run((transaction) => {
          hasBegun = true;
          return work(transaction);
        });
      } catch (error) {
        if (hasBegun || !isBusy(error)) throw error;
        if (isLastTime) {
          this.#patience.wearOut();
          throw error;
        }
      }
      await sleep(LOCKED_PAUSE_MS);
    }
  }

  /** Whether this version of the app knows the schema: to a transaction that stays so until it is over. */
  knowsSchema(): boolean {
    try {
      this.#schema.check();
      return true;
    } catch (error) {
      if (error instanceof NewerSchemaError) return false;
      throw error;
    }
  }

  /** Looks behind the work, which has the write lock. */
  #checked<T>(work: Work<T>): Work<T> {
    return async (transaction) => {
      const result = await work(transaction);
      this.#schema.check();
      return result;
    };
  }
}
