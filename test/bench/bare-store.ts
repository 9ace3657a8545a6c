import { openDatabase } from '../../src/store/database.ts';

/** Whose list it is. */
interface ListKey {
  company: string;
  resource: string;
}

/** Writes pages the plain way. */
export interface BareStore {
  /** A page's records, and where its list goes on, in one transaction. */
  write(list: ListKey, documents: readonly { id: string }[], next: string | null): Promise<void>;
  close(): Promise<void>;
}

/**
 * Opens a store with the app's own tables, indexes and settings, as they are today; what is written to it, and how, is
 * the bench's own. The hash that the app compares by stays empty.
 *
 * @param url of a file that is not there yet
 */
export async function openBareStore(url: string, lists: readonly ListKey[]): Promise<BareStore> {
  const db = await openDatabase(url);
  const instance = db.prepare<[string, string]>(
    "insert or ignore into instances (id, name, status, installed_at) values (?, ?, 'active', 0)",
  );
  const run = db.prepare<[string, string]>(
    `insert into runs (instance_id, resource, state, phase, fence, pages, records, skipped, deleted, attempt)
     values (?, ?, 'running', 'pages', 1, 0, 0, 0, 0, 0)`,
  );
  await db.writeAtOnce(() => {
    for (const { company, resource } of lists) {
      instance.run(company, company);
      run.run(company, resource);
    }
  });
  const upsert = db.prepare<[list: number, id: string, document: string, now: number]>(
    `insert into records (list, id, hash, document, updated_at) values (?, ?, '', ?, ?)
     on conflict (list, id) do update set
       document = excluded.document, updated_at = excluded.updated_at`,
  );
  const move = db.prepare<[next: string | null, records: number, string, string], { list: number }>(
    `update runs set cursor = ?, pages = pages + 1, records = records + ? where instance_id = ? and resource = ?
     returning list`,
  );
  return {
    write: ({ company, resource }, documents, next) =>
      db.writeAtOnce(() => {
        const now = Date.now();
        const run = move.get(next, documents.length, company, resource);
        if (run === undefined) throw new Error(`no list of ${company}`);
        for (const document of documents) upsert.run(run.list, document.id, JSON.stringify(document), now);
      }),
    close: () => db.destroy(),
  };
}
