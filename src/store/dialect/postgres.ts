import { PostgresDialect, sql } from 'kysely';
import pg from 'pg';
import { type Phrase, type StoreDialect, StoreError } from '../database.ts';

const MOST_CONNECTIONS = 10;

/** A database that does not answer is in trouble after this, in milliseconds. */
const CONNECT_TIMEOUT_MS = 5_000;
const CHECK_TIMEOUT_MS = 1_500;

/** Another session's lock is waited for so long, in milliseconds. */
const LOCK_TIMEOUT_MS = 10_000;
const CHECK_LOCK_TIMEOUT_MS = 1_000;

/** Types that JavaScript's numbers hold: `bigint` (up to 2^53, which clocks in microseconds do not reach) and sums. */
const NUMBERS: ReadonlySet<number> = new Set([pg.types.builtins.INT8, pg.types.builtins.NUMERIC]);

/** Serialization failure and deadlock: https://www.postgresql.org/docs/current/errcodes-appendix.html */
const CONFLICTS: ReadonlySet<string> = new Set(['40001', '40P01']);

/** Classes of errors that tell of a server in trouble. */
const MEANINGS: readonly [RegExp, string][] = [
  [/^08|^57P|^ECONN|^EPIPE|^ETIMEDOUT|^ENOTFOUND|^EAI_AGAIN|^EHOST/, 'it cannot be reached'],
  [/^53100/, 'its disk is full'],
  [/^53/, 'it has no connections or memory left'],
  [/^25006|^55000/, 'it takes no writes'],
  [/^28|^3D000|^42501/, 'it refuses the user, the password or the name in DATABASE_URL'],
  [/^55P03/, 'another session keeps it locked'],
  [/^58|^XX/, 'the server itself is in trouble'],
];

/**
 * PostgreSQL, for processes of several machines. Sessions commit without waiting for the disk
 * (`synchronous_commit=off`); what must stay waits for it.
 *
 * @param url as pg reads it
 * @param onError told of connections that break while nobody uses them
 */
export function openPostgres(url: string, onError: (error: Error) => void): StoreDialect {
  const pool = new pg.Pool({
    connectionString: url,
    max: MOST_CONNECTIONS,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    keepAlive: true,
    keepAliveInitialDelayMillis: 10_000,
    application_name: 'partner-app',
    onConnect: (client) =>
      client.query(`set synchronous_commit = off; set lock_timeout = ${LOCK_TIMEOUT_MS}`),
    types: {
      getTypeParser: ((id: number, format?: 'text' | 'binary') =>
        NUMBERS.has(id) ? Number : pg.types.getTypeParser(id, format)) as typeof pg.types.getTypeParser,
    },
  });
  pool.on('error', onError);
  // One that breaks within a transaction fails its next query. Without a listener it would end the process.
  pool.on('connect', (client) => client.on('error', () => undefined));
  return {
    name: 'postgres',
    kysely: new PostgresDialect({ pool }),
    nowMs: sql<number>`floor(extract(epoch from clock_timestamp()) * 1000)`,
    identity: { type: 'bigint', build: (column) => column.generatedByDefaultAsIdentity().primaryKey() },
    // Room for new versions of rows that are updated in every run.
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
            ${records.map(({ words }) => vector(words))}::text[]) as fresh (record, words)
          on conflict (record) do update set words = excluded.words`.execute(db);
      },
      async remove(db, records) {
        await sql`delete from search where record = any(${records}::bigint[])`.execute(db);
      },
      async find(db, list, groups, { after, limit }) {
        const query = groups.map((group) => `(${group.map(written).join(' | ')})`).join(' & ');
        // Materialized, as the planner would walk over all records in the order of their ids instead.
        const { rows } = await sql<{ id: number }>`
          with found as materialized (
              select record from search where words @@ ${query}::tsquery and record > ${after}),
            beginning as materialized (select record from found order by record limit ${limit})
          select seen.record as id from beginning join seen on seen.record = beginning.record
          where seen.list = ${list} order by seen.record`.execute(db);
        return rows.map(({ id }) => id);
      },
    },
    // Text holds no NUL here. It comes by addresses and error messages alone: no record with one in its id is kept.
    clean: (query) =>
      query.parameters.some(hasNul)
        ? {
            ...query,
            parameters: query.parameters.map((value) =>
              hasNul(value) ? value.replaceAll('\0', '\ufffd') : value,
            ),
          }
        : query,
    isBusy: () => false,
    isConflict: (error) => CONFLICTS.has(codeOf(error) ?? ''),
    explain(error) {
      const code = codeOf(error);
      if (code === undefined) return undefined;
      const meaning = MEANINGS.find(([codes]) => codes.test(code))?.[1];
      return meaning && `The database cannot be used: ${meaning} (${(error as Error).message}).`;
    },
    transaction: (db, isDurable, work) =>
      db.transaction().execute(async (transaction) => {
        if (isDurable) await sql`set local synchronous_commit = on`.execute(transaction);
        return work(transaction);
      }),
    limitStatements: (transaction, ms) =>
      sql`set local statement_timeout = ${sql.lit(ms)}`.execute(transaction),
    // Kysely's migrator takes a lock of its own here.
    exclusively: (db, work) => work(db),
    async hasTable(db, name) {
      const { rows } = await sql`select 1 where to_regclass(${name}) is not null`.execute(db);
      return rows.length > 0;
    },
    async check(db) {
      const late = Promise.withResolvers<never>();
      const timer = setTimeout(() => {
        const why = `it cannot be reached, or is locked (no answer within ${CHECK_TIMEOUT_MS} ms)`;
        late.reject(new StoreError(`The database cannot be used: ${why}.`));
      }, CHECK_TIMEOUT_MS);
      // As a write does: a standby refuses that, and another session's lock is waited for.
      const writes = db.transaction().execute(async (transaction) => {
        await sql`set local lock_timeout = ${sql.lit(CHECK_LOCK_TIMEOUT_MS)}`.execute(transaction);
        await sql`lock table runs in row exclusive mode`.execute(transaction);
      });
      await Promise.race([writes, late.promise]).finally(() => clearTimeout(timer));
    },
  };
}

function hasNul(value: unknown): value is string {
  return typeof value === 'string' && value.includes('\0');
}

/** The code of an error of the server, or of the connection to it. */
function codeOf(error: unknown): string | undefined {
  if (!(error instanceof Error)) return undefined;
  const { code } = error as { code?: unknown };
  if (typeof code === 'string') return code;
  // What the driver itself says is a plain error without a code.
  const isDrivers =
    error.constructor === Error && /^(Connection terminated|timeout exceeded|Client )/.test(error.message);
  return isDrivers ? 'ECONNRESET' : undefined;
}

/**
 * A vector's text. Words are letters and digits alone: none of them needs an escape. Their number and length are bounded
 * (search-words.ts) so that it stays below the megabyte that a vector holds.
 */
function vector(words: readonly string[]): string {
  return words.map((word, at) => `'${word}':${at + 1}`).join(' ');
}

function written({ words, isBeginning }: Phrase): string {
  return words
    .map((word, at) => `'${word}'${isBeginning && at === words.length - 1 ? ':*' : ''}`)
    .join(' <-> ');
}
