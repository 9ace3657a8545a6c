import { CompiledQuery, type DatabaseConnection, PostgresDialect, PostgresDriver, sql } from 'kysely';
import pg from 'pg';
import { type Phrase, RECORD_CHANGES, type StoreDialect, StoreError, statement } from '../database.ts';

const MOST_CONNECTIONS = 10;

/** How long work waits for a connection that other work of the process has, in milliseconds. */
const LONGEST_TURN_MS = 60_000;

/** How long the database may take to answer, in milliseconds. */
const CONNECT_TIMEOUT_MS = 5_000;
const CHECK_TIMEOUT_MS = 1_500;

/** How long a statement waits for another session's lock, in milliseconds. */
const LOCK_TIMEOUT_MS = 10_000;
const CHECK_LOCK_TIMEOUT_MS = 1_000;

/** A failover leaves sessions of the old primary behind, and a pooler new settings: connections live so long, in seconds. */
const CONNECTION_LIFE_S = 30 * 60;

/** Types that are read as numbers: `bigint`, which stays below 2^53 here, and sums. */
const NUMBERS: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

const CANCELLED = 'a statement was cancelled, or took longer than the statement_timeout of the server';
const SLOW_HANDLER = "a statement took longer than the handler's time";

const NO_TURN = 'NO_TURN';

/** read_only_sql_transaction */
const READ_ONLY = '25006';

const MEANINGS: readonly [RegExp, string][] = [
  [/^NO_TURN/, 'other work of this process keeps its connections'],
  [/^08|^57P|^ECONN|^EPIPE|^ETIMEDOUT|^ENOTFOUND|^EAI_AGAIN|^EHOST/, 'it cannot be reached'],
  [/^53100/, 'its disk is full'],
  [/^53300/, 'it has no connections left: raise its max_connections, or run fewer processes'],
  [/^53/, 'it has no memory left'],
  [/^25006|^55000/, 'it takes no writes'],
  [/^28|^3D000|^42501/, 'it refuses the user, the password or the name in DATABASE_URL'],
  [/^55P03/, 'another session keeps it locked'],
  [/^58|^XX/, 'the server itself is in trouble'],
];

const WRITE_RECORDS = statement(
  { name: 'postgres' },
  `with written as (
      insert into records (list, external_id, hash, change_seq, created_seq, document)
      select :list, * from unnest(:ids::text[], :hashes::text[], :seqs::bigint[], :createdSeqs::bigint[], :texts::text[])
      ${RECORD_CHANGES} returning id, change_seq, created_seq)
    insert into seen (list, record, run) select :list, id, :run from written where created_seq = change_seq
    on conflict (list, record) do update set run = excluded.run`,
);

/**
 * A search looks for its words in a span of ids, as the server reads the row of every record with a common word. The next
 * span is long enough for the rest, if the words are as frequent there. For rare words it has no end.
 */
const FIRST_SPAN = 40_000;
const MORE = 1.2;
const RARE = 0.01;

/** Begins each transaction: behind a pooler such as PgBouncer, the session may have another client's settings. */
const begin = (statementsMs: string) =>
  CompiledQuery.raw(`begin; set local synchronous_commit = off; set local lock_timeout = ${LOCK_TIMEOUT_MS};
    set local statement_timeout = ${statementsMs}`);

/**
 * PostgreSQL, for processes of several machines. Transactions commit without waiting for the disk
 * (`synchronous_commit=off`), unless they are durable.
 *
 * @param url as pg reads it
 * @param onError told of connections that break while nobody uses them
 * @param options.statementsMs ends longer statements; without it the server's own limit holds
 * @param options.connections at most
 */
export function openPostgres(
  url: string,
  onError: (error: Error) => void,
  {
    statementsMs,
    connections = MOST_CONNECTIONS,
  }: { statementsMs?: number | undefined; connections?: number | undefined } = {},
): StoreDialect {
  const limit = statementsMs === undefined ? 'default' : String(Math.ceil(statementsMs));
  const pool = new pg.Pool({
    connectionString: url,
    max: connections,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    maxLifetimeSeconds: CONNECTION_LIFE_S,
    // Statements of a transaction need not wait for each other's answers.
    pipeline: true,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'partner-app',
    ...(statementsMs !== undefined && {
      // Of what a handler reads outside of transactions.
      onConnect: (client) => client.query(`set statement_timeout = ${limit}`),
    }),
    types: {
      getTypeParser: ((id: number, format?: 'text' | 'binary') =>
        NUMBERS.has(id) ? Number : pg.types.getTypeParser(id, format)) as typeof pg.types.getTypeParser,
    },
  });
  pool.on('error', onError);
  const openedAt = new WeakMap<object, number>();
  let readOnlyAt = 0;
  pool.on('connect', (client) => {
    // A connection that breaks fails its next query. Without a listener the error would end the process.
    client.on('error', () => undefined);
    openedAt.set(client, performance.now());
  });
  // A session of a server that was read-only stays so, although the next one is not.
  pool.on('release', (_error, client) => {
    if ((openedAt.get(client) ?? 0) < readOnlyAt) void (client as pg.Client).end();
  });
  return {
    name: 'postgres',
    kysely: Object.assign(new PostgresDialect({ pool }), {
      createDriver: () => new QueuedDriver(pool, connections, begin(limit)),
    }),
    nowMs: sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)`,
    identity: sql`bigint generated by default as identity primary key`,
    // Every run updates the rows: their new versions find space in the same page.
    narrowTable: sql`with (fillfactor = 80)`,
    search: {
      async create(db) {
        await sql`create table search (record bigint primary key, words tsvector not null)`.execute(db);
        await sql`create index search_words on search using gin (words)`.execute(db);
      },
      async write(db, records) {
        await sql`insert into search (record, words)
          select record, words::tsvector from unnest(
            ${records.map(({ record }) => record)}::bigint[],
            ${textArray(records.map(({ words }) => vector(words)))}::text[]) as fresh (record, words)
          on conflict (record) do update set words = excluded.words`.execute(db);
      },
      async remove(db, records) {
        await sql`delete from search where record = any(${records}::bigint[])`.execute(db);
      },
      async find(db, list, groups, { after, limit }) {
        const query = groups.map((group) => `(${group.map(written).join(' | ')})`).join(' & ');
        const bounds = await db
          .selectFrom('seen')
          .select(({ fn }) => [fn.min<number | null>('record').as('first'), fn.max('record').as('last')])
          .where('list', '=', list)
          .where('record', '>', after)
          .executeTakeFirstOrThrow();
        const first = bounds.first ?? Number.POSITIVE_INFINITY;
        const ids: number[] = [];
        for (let from = first, span = FIRST_SPAN; from <= bounds.last && ids.length < limit; ) {
          const end = Math.min(from + span, bounds.last + 1);
          // Materialized: the planner would otherwise walk over all records in the order of their ids.
          const live = sql<{ id: number }>`
            with found as materialized (
              select record from search where words @@ ${query}::tsquery and record >= ${from} and record < ${end})
            select record as id from found join seen using (record) where list = ${list}
            order by record limit ${limit - ids.length}`;
          for (const { id } of (await live.execute(db)).rows) ids.push(id);
          const share = ids.length / (end - first);
          const wanted = Math.ceil(((limit - ids.length) / share) * MORE);
          span = share < RARE ? Number.POSITIVE_INFINITY : Math.max(2 * span, wanted);
          from = end;
        }
        return ids;
      },
    },
    isAny: (column, parameter, type) => `${column} = any(${parameter}::${type}[])`,
    values: (all) => all,
    writeRecords: (list, run, records) => {
      if (records.length === 0) return [];
      const values = {
        ids: textArray(records.map(({ id }) => id)),
        hashes: textArray(records.map(({ hash }) => hash)),
        seqs: records.map(({ seq }) => seq),
        createdSeqs: records.map(({ createdSeq }) => createdSeq),
        texts: textArray(records.map(({ text }) => text)),
      };
      return [WRITE_RECORDS({ list, run, ...values })];
    },
    // PostgreSQL keeps no NUL. Addresses and error messages may hold one; a record with one in its id is rejected.
    clean: (value) => (typeof value === 'string' ? value.replaceAll('\0', '\ufffd') : value),
    codeOf(error) {
      const code = codeOf(error);
      if (code === READ_ONLY) readOnlyAt = performance.now();
      return code;
    },
    // Serialization failure and deadlock: https://www.postgresql.org/docs/current/errcodes-appendix.html
    retryable: /^(40001|40P01)$/,
    meanings: [[/^57014/, statementsMs === undefined ? CANCELLED : SLOW_HANDLER], ...MEANINGS],
    transaction: (db, isDurable, work) =>
      db.transaction().execute(async (tx) => {
        if (isDurable) await sql`set local synchronous_commit = on`.execute(tx);
        return work(tx);
      }),
    limitStatements: (tx, ms) => sql`set local statement_timeout = ${sql.lit(ms)}`.execute(tx),
    async refuseUnfit(db) {
      const { rows } = await sql<{ encoding: string }>`
        select current_setting('server_encoding') as encoding`.execute(db);
      const [encoding] = rows.map((row) => row.encoding);
      if (encoding === 'UTF8') return;
      throw new StoreError(
        `The database is in ${encoding}, and the app needs UTF8. Make another one for DATABASE_URL: createdb --encoding=UTF8 --template=template0 NAME. To take a copy along, use pg_dump --encoding=UTF8. Nothing was done.`,
      );
    },
    // Kysely's migrator takes a lock of its own here.
    exclusively: (db, work) => work(db),
    async check(db) {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        const why = `it cannot be reached, or is locked (no answer within ${CHECK_TIMEOUT_MS} ms)`;
        late.reject(new StoreError(`The database cannot be used: ${why}.`));
      }, CHECK_TIMEOUT_MS);
      const writes = db.transaction().execute(async (tx) => {
        await sql`set local lock_timeout = ${sql.lit(CHECK_LOCK_TIMEOUT_MS)}`.execute(tx);
        // It writes nothing, but a server that takes no writes refuses it.
        await sql`update runs set list = list where false`.execute(tx);
      });
      await Promise.race([writes, late.promise]).finally(() => clearTimeout(timer));
    },
  };
}

/**
 * Gives out as many connections as the pool has. The others wait here: in the pool, their wait would count as a server
 * that does not answer.
 */
class QueuedDriver extends PostgresDriver {
  #free: number;
  readonly #waiting: (() => void)[] = [];
  readonly #begin: CompiledQuery;

  constructor(pool: pg.Pool, connections: number, begin: CompiledQuery) {
    super({ pool });
    this.#free = connections;
    this.#begin = begin;
  }

  override async acquireConnection(): Promise<DatabaseConnection> {
    if (this.#free > 0) this.#free--;
    else await this.#turn();
    return super.acquireConnection().catch((error) => {
      this.#pass();
      throw error;
    });
  }

  override async beginTransaction(connection: DatabaseConnection): Promise<void> {
    await connection.executeQuery(this.#begin);
  }

  override async releaseConnection(connection: Parameters<PostgresDriver['releaseConnection']>[0]) {
    await super.releaseConnection(connection).finally(() => this.#pass());
  }

  #turn(): Promise<void> {
    return new Promise((resolve, reject) => {
      const take = () => {
        clearTimeout(late);
        resolve();
      };
      const late = setTimeout(() => {
        this.#waiting.splice(this.#waiting.indexOf(take), 1);
        const message = `no connection of this process became free in ${LONGEST_TURN_MS / 1_000} s`;
        reject(Object.assign(new Error(message), { code: NO_TURN }));
      }, LONGEST_TURN_MS);
      this.#waiting.push(take);
    });
  }

  #pass(): void {
    const next = this.#waiting.shift();
    if (next === undefined) this.#free++;
    else next();
  }
}

/** The code of an error of the server, or of the connection to it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string') return code;
  // The driver's own errors have no code.
  const isDrivers =
    error.constructor === Error && /^(Connection terminated|timeout exceeded|Client )/.test(error.message);
  return isDrivers ? 'ECONNRESET' : undefined;
}

/**
 * The binary form of `text[]`, as `array_send` writes it. In the text form, pg escapes each quote of a document and the
 * server reads them again.
 */
function textArray(texts: readonly string[]): Buffer {
  // A UTF-16 unit takes three bytes at most.
  const most = texts.reduce((sum, text) => sum + 4 + 3 * text.length, 20);
  const array = Buffer.allocUnsafe(most);
  let at = 0;
  // One dimension without nulls, from 1.
  for (const field of [1, 0, pg.types.builtins.TEXT, texts.length, 1]) at = array.writeInt32BE(field, at);
  for (const text of texts) {
    const length = array.write(text, at + 4);
    at = array.writeInt32BE(length, at) + length;
  }
  return array.subarray(0, at);
}

/** A vector's text. Words hold letters and digits alone, and search-words.ts keeps them below the megabyte of a vector. */
function vector(words: readonly string[]): string {
  return words.map((word, at) => `'${word}':${at + 1}`).join(' ');
}

function written({ words, isBeginning }: Phrase): string {
  return words
    .map((word, at) => `'${word}'${isBeginning && at === words.length - 1 ? ':*' : ''}`)
    .join(' <-> ');
}
