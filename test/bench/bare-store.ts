import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { pathOf } from '../../src/store/dialect/sqlite.ts';

/** Enough of a page for a plain client. */
export interface PlainPage {
  _results: { id: string }[];
  _pagination: { next: string | null };
}

/** What a page held, and where it leads. */
export interface Stored {
  records: number;
  next: string | null;
}

/** Stores pages. */
export interface BareStore {
  /** Writes the records of a page and its list's cursor in one transaction. */
  write(list: string, page: PlainPage): Promise<Stored>;
  close(): Promise<void>;
}

const TABLES = `
  create table records (list text, id text, document text, primary key (list, id));
  create table cursors (list text primary key, cursor text)`;

/** The simplest store of pages in an empty database: it compares nothing and remembers nothing of what it has seen. */
export async function openBareStore(url: string): Promise<BareStore> {
  return url.startsWith('postgres:') ? openOnPostgres(url) : openOnSqlite(pathOf(url));
}

function openOnSqlite(path: string): BareStore {
  const sqlite = new Sqlite(path);
  sqlite.pragma('journal_mode = WAL');
  sqlite.pragma('synchronous = NORMAL');
  sqlite.exec(TABLES);
  const upsert = sqlite.prepare<[string, string, string]>(
    `insert into records values (?, ?, ?) on conflict do update set document = excluded.document`,
  );
  const move = sqlite.prepare<[string, string | null]>('insert or replace into cursors values (?, ?)');
  const write = sqlite.transaction((list: string, { _results, _pagination: { next } }: PlainPage) => {
    for (const document of _results) upsert.run(list, document.id, JSON.stringify(document));
    move.run(list, next);
  });
  return {
    async write(list, page) {
      write.immediate(list, page);
      return { records: page._results.length, next: page._pagination.next };
    },
    close: async () => void sqlite.close(),
  };
}

async function openOnPostgres(url: string): Promise<BareStore> {
  const pool = new pg.Pool({ connectionString: url, max: 10, options: '-c synchronous_commit=off' });
  await pool.query(TABLES);
  return {
    async write(list, { _results: results, _pagination: pagination }) {
      const client = await pool.connect();
      try {
        await client.query('begin');
        await client.query({
          name: 'records',
          text: `insert into records select $1, * from unnest($2::text[], $3::text[])
            on conflict (list, id) do update set document = excluded.document`,
          values: [list, results.map(({ id }) => id), results.map((document) => JSON.stringify(document))],
        });
        await client.query({
          name: 'cursor',
          text: `insert into cursors values ($1, $2) on conflict (list) do update set cursor = excluded.cursor`,
          values: [list, pagination.next],
        });
        await client.query('commit');
      } finally {
        client.release();
      }
      return { records: results.length, next: pagination.next };
    },
    close: () => pool.end(),
  };
}
