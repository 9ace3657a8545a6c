import Sqlite from 'better-sqlite3';
import pg from 'pg';
import { pathOf } from '../../src/store/dialect/sqlite.ts';

/** As much of a page as a plain client reads. */
export interface PlainPage {
  _results: { id: string }[];
  _pagination: { next: string | null };
}

/** The simplest store of pages. It compares nothing, and does not remember which records it has seen. */
export interface BareStore {
  /** Writes the records of a page and the cursor of its list in one transaction. */
  write(list: string, page: PlainPage): Promise<void>;
  close(): Promise<void>;
}

const TABLES = `
  create table records (list text, id text, document text, primary key (list, id));
  create table cursors (list text primary key, cursor text)`;

/** @param url of an empty database */
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
    write: async (list, page) => void write.immediate(list, page),
    close: async () => void sqlite.close(),
  };
}

/** One statement is one transaction. */
const WRITE = `
  with page as (insert into records select $1, * from unnest($3::text[], $4::text[])
    on conflict (list, id) do update set document = excluded.document)
  insert into cursors values ($1, $2) on conflict (list) do update set cursor = excluded.cursor`;

async function openOnPostgres(url: string): Promise<BareStore> {
  const pool = new pg.Pool({ connectionString: url, max: 10, options: '-c synchronous_commit=off' });
  await pool.query(TABLES);
  return {
    async write(list, { _results: results, _pagination: { next } }) {
      const documents = results.map((document) => JSON.stringify(document));
      const values = [list, next, results.map(({ id }) => id), documents];
      await pool.query({ name: 'write', text: WRITE, values });
    },
    close: () => pool.end(),
  };
}
