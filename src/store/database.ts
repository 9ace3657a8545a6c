import {
  type ColumnDefinitionBuilder,
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  Kysely,
  type QueryResult,
  type RawBuilder,
  type Transaction,
} from 'kysely';
import type { Schema } from './schema.ts';

/** How long a transaction waits for another process's write, in milliseconds. */
const PATIENCE_MS = 5_000;

/** And a check, which the readiness waits for: shorter than that does, to tell why. */
const CHECK_PATIENCE_MS = 1_000;

/** The pause between two tries to begin a transaction, in milliseconds. */
const BUSY_PAUSE_MS = 5;

/** Tries of a transaction that another one got in the way of. */
const CONFLICT_TRIES = 5;

type Work<T> = (transaction: Transaction<Schema>) => Promise<T>;

/** The words of a record, for the search index. */
interface IndexedRecord {
  record: number;
  words: readonly string[];
}

/** A row of words to look for; the last one may go on. */
export interface Phrase {
  words: readonly string[];
  isBeginning: boolean;
}

/** A search index over words that are folded and marked already: see search-words.ts. */
interface SearchDialect {
  create(db: Kysely<unknown>): Promise<void>;
  write(db: Kysely<Schema>, records: readonly IndexedRecord[]): Promise<void>;
  remove(db: Kysely<Schema>, records: readonly number[]): Promise<void>;
  /**
   * Finds live records of a list that have a row of every group, in the order of their ids.
   *
   * @param place.after behind this id
   * @returns at most `limit` ids
   */
  find(
    db: Kysely<Schema>,
    list: number,
    groups: readonly (readonly Phrase[])[],
    place: { after: number; limit: number },
  ): Promise<number[]>;
}

/** What differs between the databases, and nothing else. */
export interface StoreDialect {
  name: 'sqlite' | 'postgres';
  kysely: Dialect;
  /** The database's clock, in milliseconds since 1970: leases of several hosts compare with one clock. */
  nowMs: RawBuilder<number>;
  /** A primary key that the database counts up and never uses again. */
  identity: {
    type: 'integer' | 'bigint';
    build: (column: ColumnDefinitionBuilder) => ColumnDefinitionBuilder;
  };
  /** How a table of short rows that are updated often is stored. */
  narrowTable: RawBuilder<unknown>;
  search: SearchDialect;
  /** A query as the database takes it, where it does not take every text. */
  clean?(query: CompiledQuery): CompiledQuery;
  /** Another process writes: the transaction did not begin. */
  isBusy(error: unknown): boolean;
  /** Another transaction came in between: this one was rolled back, and may be tried again. */
  isConflict(error: unknown): boolean;
  /** The error of a database in trouble, in words for the engineer on call; undefined for any other error. */
  explain(error: unknown): string | undefined;
  /** Ends statements of a transaction that take longer, where the database can. */
  limitStatements?(transaction: Kysely<Schema>, ms: number): Promise<unknown>;
  /** Runs a transaction; `isDurable`: it is on the disk when it is over. */
  transaction<T>(db: Kysely<Schema>, isDurable: boolean, work: Work<T>): Promise<T>;
  /** Overwrites what was deleted in the files, where the database leaves it there; others write in between. */
  purge?(db: Database): Promise<void>;
  /** Runs migrations one process at a time. */
  exclusively(db: Kysely<Schema>, work: (db: Kysely<Schema>) => Promise<void>): Promise<void>;
  hasTable(db: Kysely<Schema>, name: string): Promise<boolean>;
  /** Whether the database takes writes; throws its error. */
  check(db: Kysely<Schema>): Promise<void>;
}

/** The database is in trouble: it cannot be reached, is locked, or takes no writes. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/** The database, typed. All that writes is a transaction. */
export class Database extends Kysely<Schema> {
  readonly dialect: StoreDialect;

  constructor(dialect: StoreDialect) {
    super({ dialect: withStoreErrors(dialect) });
    this.dialect = dialect;
  }

  /**
   * A transaction whose loss in a power cut costs only work that is done again: pages and consumers.
   *
   * @throws StoreError
   */
  transact<T>(work: Work<T>): Promise<T> {
    return this.#run(() => this.dialect.transaction(this, false, work));
  }

  /**
   * A transaction that is on the disk when it is over: tokens, installs, sessions, what a person did.
   *
   * @throws StoreError
   */
  durably<T>(work: Work<T>): Promise<T> {
    return this.#run(() => this.dialect.transaction(this, true, work));
  }

  /** @throws StoreError that says what is wrong, for the engineer on call */
  async check(): Promise<void> {
    await this.#run(() => this.dialect.check(this), CHECK_PATIENCE_MS);
  }

  /** Waits without the connection, so that other queries of the process go on. */
  async #run<T>(work: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
    const { dialect } = this;
    const giveUpAt = performance.now() + patienceMs;
    for (let tries = 1; ; ) {
      try {
        return await work();
      } catch (error) {
        const cause = error instanceof StoreError ? error.cause : error;
        const isBusy = dialect.isBusy(cause) && performance.now() < giveUpAt;
        const isConflict = dialect.isConflict(cause) && tries++ < CONFLICT_TRIES;
        if (!isBusy && !isConflict) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS));
    }
  }
}

/** The database's driver, whose errors are StoreErrors where the database is in trouble. */
function withStoreErrors({ kysely, explain, clean = (query) => query }: StoreDialect): Dialect {
  const fail = (error: unknown): never => {
    const message = explain(error);
    throw message === undefined ? error : new StoreError(message, { cause: error });
  };
  return {
    createAdapter: () => kysely.createAdapter(),
    createIntrospector: (db) => kysely.createIntrospector(db),
    createQueryCompiler: () => kysely.createQueryCompiler(),
    createDriver() {
      const driver = kysely.createDriver();
      const acquire = driver.acquireConnection.bind(driver);
      const known = new WeakSet<DatabaseConnection>();
      driver.acquireConnection = async (options) => {
        const connection = await acquire(options).catch(fail);
        if (known.has(connection)) return connection;
        known.add(connection);
        const execute = connection.executeQuery.bind(connection);
        connection.executeQuery = (query, ...rest) => execute<never>(clean(query), ...rest).catch(fail);
        return connection;
      };
      return driver;
    },
  };
}

/**
 * A statement over many rows. Its text is made once for each number of rows: building it takes longer than running it.
 *
 * @param width values of a row
 * @param text with the rows' placeholders, and one for a value behind them
 */
export function manyRows<Row = unknown>(
  { name }: StoreDialect,
  width: number,
  text: (rows: string, last: string) => string,
): (db: Kysely<Schema>, rows: readonly (readonly unknown[])[], last?: unknown) => Promise<QueryResult<Row>> {
  const texts = new Map<number, string>();
  const make = (count: number) => {
    let at = 0;
    const next = () => (name === 'postgres' ? `$${++at}` : '?');
    const row = () => Array.from({ length: width }, next).join(', ');
    const rows = Array.from({ length: count }, () => (width === 1 ? row() : `(${row()})`)).join(', ');
    return text(rows, next());
  };
  return (db, rows, last) => {
    const query = texts.get(rows.length) ?? make(rows.length);
    texts.set(rows.length, query);
    const values = last === undefined ? rows.flat() : [...rows.flat(), last];
    return db.executeQuery<Row>(CompiledQuery.raw(query, values));
  };
}

/** Holds a list until the transaction is over: only one at a time writes its records. Undefined when it is removed. */
export async function lockList(db: Database, transaction: Kysely<Schema>, list: number) {
  const row = await transaction
    .selectFrom('lists')
    .select(['change_seq', 'stored', 'failing_since', 'paused_at', 'removed_at'])
    .where('id', '=', list)
    .$if(db.dialect.name === 'postgres', (query) => query.forUpdate())
    .executeTakeFirst();
  return row?.removed_at === null ? row : undefined;
}

/**
 * The next number of a list's change feed: behind its last one, and not before the clock in microseconds, so that no
 * number comes twice, whatever was lost, restored or installed again.
 */
export function nextSeq(last: number): number {
  return Math.max(last + 1, Date.now() * 1_000);
}
