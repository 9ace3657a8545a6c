import type { IncomingHttpHeaders } from 'node:http';
import { sql } from 'kysely';
import type { Database } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/open-database.ts';

/** Whose list it is. */
export interface ListKey {
  company: string;
  resource: string;
}

/** Takes the pages of a loop. */
export interface PageTaker {
  /** Called before a page of the list is asked for. */
  begin(list: ListKey): Promise<void>;
  /** Stores the page's records, and where its list goes on, in one transaction. */
  take(
    list: ListKey,
    bytes: Buffer,
    headers: IncomingHttpHeaders,
  ): Promise<{ records: number; next: string | null }>;
  close(): Promise<void>;
}

/** What a plain client takes from a page. */
export interface PlainPage {
  _results: { id: string }[];
  _pagination: { next: string | null };
}

/** A plain program has no thread that copies the log: who commits does, after so many pages of 4 KB, 16 times SQLite's default. */
const CHECKPOINT_PAGES = 16_000;

/**
 * Opens a store with the app's own tables, indexes and settings, as they are today, but for who copies the log; and sees
 * to a run of each list.
 */
export async function openWithRuns(url: string, lists: readonly ListKey[]): Promise<Database> {
  const db = await openDatabase(url);
  await sql`pragma wal_autocheckpoint = ${sql.lit(CHECKPOINT_PAGES)}`.execute(db);
  const instance = db.prepare<[string, string]>(
    "insert or ignore into instances (id, name, status, installed_at) values (?, ?, 'active', 0)",
  );
  const run = db.prepare<[string, string]>(
    `insert or ignore into runs (instance_id, resource, state, phase, fence, pages, records, skipped, deleted, attempt)
     values (?, ?, 'running', 'pages', 1, 0, 0, 0, 0, 0)`,
  );
  await db.writeAtOnce(() => {
    for (const { company, resource } of lists) {
      instance.run(company, company);
      run.run(company, resource);
    }
  });
  return db;
}

/**
 * Writes pages the plain way, into the app's own tables; what is written, and how, is the bench's own. The hash that the
 * app compares by stays empty.
 *
 * @returns a function that writes a page's records, and where its list goes on, in one transaction
 */
export function plainWriter(db: Database): (list: ListKey, page: PlainPage) => Promise<void> {
  const upsert = db.prepare<[list: number, id: string, document: string, now: number]>(
    `insert into records (list, id, hash, document, updated_at) values (?, ?, '', ?, ?)
     on conflict (list, id) do update set
       document = excluded.document, updated_at = excluded.updated_at`,
  );
  const move = db.prepare<[next: string | null, records: number, string, string], { list: number }>(
    `update runs set cursor = ?, pages = pages + 1, records = records + ? where instance_id = ? and resource = ?
     returning list`,
  );
  return ({ company, resource }, { _results: documents, _pagination: pagination }) =>
    db.writeAtOnce(() => {
      const now = Date.now();
      const run = move.get(pagination.next, documents.length, company, resource);
      if (run === undefined) throw new Error(`no list of ${company}`);
      for (const document of documents) upsert.run(run.list, document.id, JSON.stringify(document), now);
    });
}

/** @param url of a file that is not there yet */
export async function openBareStore(url: string, lists: readonly ListKey[]): Promise<PageTaker> {
  const db = await openWithRuns(url, lists);
  const write = plainWriter(db);
  return {
    begin: async () => undefined,
    async take(list, bytes) {
      const page = JSON.parse(bytes.toString()) as PlainPage;
      await write(list, page);
      return { records: page._results.length, next: page._pagination.next };
    },
    close: () => db.destroy(),
  };
}
