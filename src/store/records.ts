import type { Selectable } from 'kysely';
import type { Database } from './database.ts';
import type { RecordPage, RecordReader, StoredRecord } from './record-types.ts';
import { RemovalStore } from './removals.ts';
import { LIST_OF } from './runs.ts';
import type { RecordTable } from './schema.ts';
import { listMark, searchQuery } from './search-words.ts';

/** How many documents a stream reads at a time. */
const STREAM_CHUNK = 500;

/** Matches of a search are counted up to here. */
const MOST_COUNTED = 10_000;

interface BrowseOptions {
  search?: string;
  offset: number;
  limit: number;
}

/** The copy, for reading. */
export class RecordStore implements RecordReader {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #removals: RemovalStore;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#removals = new RemovalStore(db);
  }

  browse(instanceId: string, resource: string, options: BrowseOptions): Promise<RecordPage> {
    return this.#db.atOnce(() => {
      const pending = this.#statements.pending.get(instanceId, resource)?.pending ?? 0;
      const search = options.search?.trim() ?? '';
      const found =
        search === ''
          ? this.#list(instanceId, resource, options)
          : this.#search(instanceId, resource, search, options);
      return { ...found, pending };
    });
  }

  async find(instanceId: string, resource: string, id: string): Promise<StoredRecord | undefined> {
    const row = await this.#db.atOnce(() => this.#statements.find.get(instanceId, resource, id));
    return row === undefined ? undefined : toStoredRecord(row);
  }

  async *stream(instanceId: string, resource: string): AsyncIterable<string> {
    // In portions after the last seq, so that a slow reader never keeps the connection from writers.
    for (let after = 0; ; ) {
      const rows = await this.#db.atOnce(() =>
        this.#statements.portion.all(instanceId, resource, after, STREAM_CHUNK),
      );
      for (const row of rows) yield row.document;
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.seq;
    }
  }

  /** Deletes the whole copy of an instance. */
  removeAll(instanceId: string): Promise<void> {
    return this.#removals.removeAll(instanceId);
  }

  #list(instanceId: string, resource: string, { offset, limit }: BrowseOptions) {
    const { list, stored } = this.#statements;
    return {
      records: list.all(instanceId, resource, limit, offset).map(toStoredRecord),
      total: stored.get(instanceId, resource)?.stored ?? 0,
      hasMore: false,
    };
  }

  #search(instanceId: string, resource: string, typed: string, { offset, limit }: BrowseOptions) {
    const query = searchQuery(typed, listMark(instanceId, resource));
    if (query === undefined) return { records: [], total: 0, hasMore: false };
    const { search, matches } = this.#statements;
    const records = search.all(query, instanceId, resource, limit, offset).map(toStoredRecord);
    const counted = matches.get(query, instanceId, resource, MOST_COUNTED + 1)?.counted ?? 0;
    return { records, total: Math.min(counted, MOST_COUNTED), hasMore: counted > MOST_COUNTED };
  }
}

function prepare(db: Database) {
  // Looked up among the records of the list, as the index may be behind, and its words are told apart by a short mark.
  const found = `from search cross join records on records.seq = search.rowid
    where search match ? and list = ${LIST_OF} and deleted_at is null`;
  return {
    find: db.prepare<[string, string, id: string], Selectable<RecordTable>>(
      `select * from records where list = ${LIST_OF} and id = ?`,
    ),
    list: db.prepare<[string, string, limit: number, offset: number], Selectable<RecordTable>>(`
      select * from records where list = ${LIST_OF} and deleted_at is null
      order by seq limit ? offset ?`),
    stored: db.prepare<[string, string], { stored: number }>(
      'select stored from runs where instance_id = ? and resource = ?',
    ),
    portion: db.prepare<[string, string, after: number, limit: number], { seq: number; document: string }>(`
      select seq, document from records where list = ${LIST_OF} and deleted_at is null and seq > ?
      order by seq limit ?`),
    search: db.prepare<[string, string, string, limit: number, offset: number], Selectable<RecordTable>>(
      `select records.* ${found} order by search.rowid limit ? offset ?`,
    ),
    matches: db.prepare<[string, string, string, limit: number], { counted: number }>(
      `select count(*) as counted from (select 1 ${found} limit ?)`,
    ),
    pending: db.prepare<[string, string], { pending: number }>(`
      select coalesce(sum(count), 0) as pending from search_queue where list = ${LIST_OF}`),
  };
}

function toStoredRecord(row: Selectable<RecordTable>): StoredRecord {
  return { id: row.id, document: row.document, updatedAt: row.updated_at, deletedAt: row.deleted_at };
}
