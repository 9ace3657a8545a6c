import {
  CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  Kysely,
  type QueryResult,
  type RawBuilder,
  type SelectQueryBuilder,
  type Transaction,
} from 'kysely';
import type { Schema } from './schema.ts';

/** How long a transaction is tried again while others are in its way, in milliseconds. */
const PATIENCE_MS = 5_000;

/** The same for a check: readiness waits less than a transaction, and must still say why. */
const CHECK_PATIENCE_MS = 1_000;

/** The pause between two tries, in milliseconds. */
const RETRY_PAUSE_MS = 5;

type Work<T> = (tx: Transaction<Schema>) => Promise<T>;

/** A record with its words, for the search index. */
interface IndexedRecord {
  record: number;
  words: readonly string[];
}

/** Words in a row. With `isBeginning`, the last one is the beginning of a word. */
export interface Phrase {
  words: readonly string[];
  isBeginning: boolean;
}

/** A record of a page that is new or has changed. */
export interface WrittenRecord {
  id: string;
  hash: string;
  seq: number;
  createdSeq: number;
  text: string;
}

/** What becomes of a record that is known. */
export const RECORD_CHANGES = `on conflict (list, external_id) do update set hash = excluded.hash,
  change_seq = excluded.change_seq, created_seq = excluded.created_seq, deleted_at = null,
  document = excluded.document`;

/** A search index. Its words are folded and marked already: see search-words.ts. */
interface SearchDialect {
  create(db: Kysely<unknown>): Promise<void>;
  write(db: Kysely<Schema>, records: readonly IndexedRecord[]): Promise<void>;
  remove(db: Kysely<Schema>, records: readonly number[]): Promise<void>;
  /**
   * Finds live records of a list that have a phrase of every group.
   *
   * @returns at most `limit` ids that are greater than `after`, in their order
   */
  find(
    db: Kysely<Schema>,
    list: number,
    groups: readonly (readonly Phrase[])[],
    place: { after: number; limit: number },
  ): Promise<number[]>;
}

/** What differs between the databases. */
export interface StoreDialect {
  name: 'sqlite' | 'postgres';
  kysely: Dialect;
  /** The database's clock, in milliseconds since 1970: the leases of all hosts compare with it. */
  nowMs: RawBuilder<number>;
  /** Type of a primary key that the database counts up and never uses again. */
  identity: RawBuilder<unknown>;
  /** How the database stores a table of short rows that change often. */
  narrowTable: RawBuilder<unknown>;
  search: SearchDialect;
  /** A condition of SQL text: the column is one of the values of a parameter, which `values` makes. */
  isAny(column: string, parameter: string, type: 'text' | 'bigint'): string;
  values(all: readonly (string | number)[]): unknown;
  /** Statements that write records of a list, and that a run has seen those which were not live before. */
  writeRecords(list: number, run: number, records: readonly WrittenRecord[]): CompiledQuery[];
  /** @throws StoreError for a database that the app must not work with, before it changes anything there */
  refuseUnfit?(db: Kysely<Schema>): Promise<void>;
  /** Replaces what the database does not take in a parameter. */
  clean?(parameter: unknown): unknown;
  /** The database's code of an error. */
  codeOf(error: unknown): string | undefined;
  /** Codes that mean: another transaction was in the way, and the same work may be tried again. */
  retryable: RegExp;
  /** What codes mean, for the engineer on call. Any other error has another cause than the database. */
  meanings: readonly (readonly [RegExp, string])[];
  /** Ends slow statements of a transaction, where the database can. */
  limitStatements?(tx: Kysely<Schema>, ms: number): Promise<unknown>;
  /** Runs a transaction. When a durable one is over, it is on the disk. */
  transaction<T>(db: Kysely<Schema>, isDurable: boolean, work: Work<T>): Promise<T>;
  /** Overwrites deleted data in the files, where the database leaves it there. */
  purge?(db: Database): Promise<void>;
  /** Runs migrations in one process at a time. */
  exclusively(db: Kysely<Schema>, work: (db: Kysely<Schema>) => Promise<void>): Promise<void>;
  /** @throws the database's error when it takes no writes */
  check(db: Kysely<Schema>): Promise<void>;
}

/** The database is in trouble: nobody can reach it, it is locked, or it takes no writes. */
export class StoreError extends Error {
  override readonly name = 'StoreError';
}

/** The open database is not the one at its address any more: everything that this process writes is lost. */
export class LostDatabaseError extends Error {
  override readonly name = 'LostDatabaseError';
}

/** The database, typed. Every write is in a transaction. */
export class Database extends Kysely<Schema> {
  readonly dialect: StoreDialect;

  constructor(dialect: StoreDialect) {
    super({ dialect: withStoreErrors(dialect) });
    this.dialect = dialect;
  }

  /**
   * Runs a transaction that a power cut may take back: of pages and consumers, whose work is done again.
   *
   * @throws StoreError
   */
  transact<T>(work: Work<T>): Promise<T> {
    return this.#run(() => this.dialect.transaction(this, false, work));
  }

  /**
   * Runs a transaction that is on the disk afterwards: of tokens, installs, sessions and what people do.
   *
   * @throws StoreError
   */
  durably<T>(work: Work<T>): Promise<T> {
    return this.#run(() => this.dialect.transaction(this, true, work));
  }

  /** @throws StoreError that tells the engineer on call what is wrong */
  async check(patienceMs = CHECK_PATIENCE_MS): Promise<void> {
    await this.#run(() => this.dialect.check(this), patienceMs);
  }

  /** Waits without a connection, so that other queries of the process go on. */
  async #run<T>(work: () => Promise<T>, patienceMs = PATIENCE_MS): Promise<T> {
    const giveUpAt = performance.now() + patienceMs;
    for (;;) {
      try {
        return await work();
      } catch (error) {
        const cause = error instanceof StoreError ? error.cause : error;
        const isRetryable = this.dialect.retryable.test(this.dialect.codeOf(cause) ?? '');
        if (!isRetryable || performance.now() >= giveUpAt) throw error;
      }
      await new Promise((resolve) => setTimeout(resolve, RETRY_PAUSE_MS));
    }
  }
}

export abstract class Store {
  protected readonly db: Database;

  constructor(db: Database) {
    this.db = db;
  }
}

/** The database's driver. Its errors are StoreErrors where the database is in trouble. */
function withStoreErrors({ kysely, codeOf, meanings, clean }: StoreDialect): Dialect {
  const fail = (error: unknown): never => {
    const code = codeOf(error) ?? '';
    const meaning = meanings.find(([codes]) => codes.test(code))?.[1];
    if (meaning === undefined) throw error;
    const message = `The database cannot be used: ${meaning} (${(error as Error).message}).`;
    throw new StoreError(message, { cause: error });
  };
  const cleaned = (query: CompiledQuery) =>
    clean === undefined ? query : { ...query, parameters: query.parameters.map(clean) };
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
        connection.executeQuery = (query, ...rest) => execute<never>(cleaned(query), ...rest).catch(fail);
        return connection;
      };
      return driver;
    },
  };
}

/**
 * Makes a statement that runs for each page or batch. Kysely would build its text each time.
 *
 * @param text names its values, as in `:list`
 * @returns takes all of them, and throws an Error for one that is missing
 */
export function statement<Row = unknown>(
  { name }: Pick<StoreDialect, 'name'>,
  text: string,
): (values: Readonly<Record<string, unknown>>) => CompiledQuery<Row> {
  const names: string[] = [];
  const written = text.replace(/(?<!:):(\w+)/g, (_, value: string) => {
    names.push(value);
    return name === 'postgres' ? `$${names.length}` : '?';
  });
  return (values) => {
    const missing = names.find((one) => values[one] === undefined);
    if (missing !== undefined) throw new Error(`A statement has no value for ${missing}.`);
    const parameters = names.map((one) => values[one]);
    return CompiledQuery.raw(written, parameters) as CompiledQuery<Row>;
  };
}

/**
 * Runs statements of a transaction in their order, each with a snapshot of its own. After an error none of them counts.
 * On PostgreSQL they take one round trip, where Kysely would wait for each answer.
 */
export function together<Rows extends readonly unknown[]>(
  { dialect }: Pick<Database, 'dialect'>,
  tx: Transaction<Schema>,
  queries: { [At in keyof Rows]: CompiledQuery<Rows[At]> },
): Promise<{ [At in keyof Rows]: QueryResult<Rows[At]> }> {
  const run = async (connection: DatabaseConnection) => {
    if (dialect.name === 'postgres') return Promise.all(queries.map((one) => connection.executeQuery(one)));
    const results: QueryResult<unknown>[] = [];
    // After some errors, as of a full disk, SQLite has no transaction any more: nothing may follow them.
    for (const query of queries) results.push(await connection.executeQuery(query));
    return results;
  };
  return tx.getExecutor().provideConnection(run) as Promise<{ [At in keyof Rows]: QueryResult<Rows[At]> }>;
}

export async function countRows<Table extends keyof Schema>(
  query: SelectQueryBuilder<Schema, Table, object>,
): Promise<number> {
  const { count } = await query
    .clearSelect()
    .select(({ fn }) => fn.countAll<number>().as('count'))
    .executeTakeFirstOrThrow();
  return count;
}
