import { setImmediate as othersTurn } from 'node:timers/promises';
import type { Database } from './database.ts';
import { CopyRemovedError, type RecordPage, type RecordReader, type StoredRecord } from './record-types.ts';
import { RemovalStore } from './removals.ts';
import { LIST_OF } from './runs.ts';
import type { FoundRecords } from './search.ts';
import { Searches } from './searches.ts';

/**
 * How many documents a stream reads at a time, and up to what length (bytes) it does: a larger one is read by itself when
 * its turn comes. So a portion is bounded, and those of usual sizes need not be measured one by one, which would take
 * half as long as reading them.
 */
const STREAM_LENGTH = 1_024 * 1_024;
const STREAM_CHUNK = 125;
const READ_AHEAD = STREAM_LENGTH / STREAM_CHUNK;

/** So much of a document is read for a page, in characters; the rest is in the download. */
const MOST_SHOWN = 100_000;

interface BrowseOptions {
  search?: string;
  offset: number;
  limit: number;
}

interface ShownRow {
  id: string;
  document: string;
  updated_at: number;
  deleted_at: number | null;
  is_cut: number;
}

/** The copy, for reading. */
export class RecordStore implements RecordReader {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #searches: Searches;
  readonly #removals: RemovalStore;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#searches = new Searches(db);
    this.#removals = new RemovalStore(db);
  }

  async browse(instanceId: string, resource: string, options: BrowseOptions): Promise<RecordPage> {
    const { offset, limit, search = '' } = options;
    const typed = search.trim();
    const { pending, listed } = await this.#db.atOnce(() => ({
      pending: this.#statements.pending.get(instanceId, resource)?.pending ?? 0,
      listed: typed === '' ? this.#list(instanceId, resource, options) : undefined,
    }));
    const { seqs, ...found } =
      listed ?? (await this.#searches.find({ instanceId, resource, typed, offset, limit }));
    const records: StoredRecord[] = [];
    for (const seq of seqs) {
      const rows = await this.#db.atOnce(() => this.#statements.record.all(seq, instanceId, resource));
      records.push(...rows.map(toStoredRecord));
      // All of a document is read for its beginning.
      if (rows.some(({ is_cut }) => is_cut === 1)) await othersTurn();
    }
    return { records, ...found, pending };
  }

  async find(instanceId: string, resource: string, id: string): Promise<StoredRecord | undefined> {
    const row = await this.#db.atOnce(() => this.#statements.find.get(instanceId, resource, id));
    return row === undefined ? undefined : toStoredRecord(row);
  }

  async *stream(instanceId: string, resource: string): AsyncIterable<string> {
    // In portions after the last seq, so that a slow reader never keeps the connection from writers.
    for (let after = 0; ; ) {
      const { rows, isRemoved } = await this.#db.atOnce(() => ({
        rows: this.#statements.portion.all(instanceId, resource, after, STREAM_CHUNK),
        isRemoved: this.#isRemoved(instanceId, resource, after),
      }));
      // Before the first record, it is a copy of nothing; later, what was read would be taken for the whole.
      if (isRemoved && after === 0) return;
      if (isRemoved) throw new CopyRemovedError();
      for (const { seq, document } of rows) {
        if (document !== null) yield document;
        else yield* await this.#large(seq, instanceId, resource);
      }
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.seq;
    }
  }

  /** Whether anything is kept of an instance's records, be it of deleted ones, or set aside. */
  keepsAny(instanceId: string): Promise<boolean> {
    return this.#removals.hasAny(instanceId);
  }

  /** Ends what searches; the store is not asked any more. */
  close(): Promise<void> {
    return this.#searches.close();
  }

  /** Whether an instance's copy is to be removed, and is not yet. */
  isGoing(instanceId: string): Promise<boolean> {
    return this.#db.atOnce(() => this.#statements.removal.get(instanceId) !== undefined);
  }

  /** Removes what is left of a copy whose removal was begun. */
  finishRemoval(instanceId: string): Promise<void> {
    return this.#removals.finish(instanceId);
  }

  /**
   * Whether the copy is being removed, or was since a record of it was read. To be asked after the records that it is
   * about were read: another process may begin in between.
   *
   * @param seq of the record, which else stays, though it may be marked as deleted; 0 for none
   */
  #isRemoved(instanceId: string, resource: string, seq: number): boolean {
    const { removal, kept } = this.#statements;
    if (removal.get(instanceId) !== undefined) return true;
    return seq > 0 && kept.get(seq, instanceId, resource) === undefined;
  }

  /** One document, unless its record was deleted meanwhile. */
  #large(seq: number, instanceId: string, resource: string): Promise<string[]> {
    const { large } = this.#statements;
    return this.#db.atOnce(() => large.all(seq, instanceId, resource).map(({ document }) => document));
  }

  #list(instanceId: string, resource: string, { offset, limit }: BrowseOptions): FoundRecords {
    const { list, stored } = this.#statements;
    return {
      seqs: list.all(instanceId, resource, limit, offset).map(({ seq }) => seq),
      total: stored.get(instanceId, resource)?.stored ?? 0,
      hasMore: false,
      isShortened: false,
      isCoarse: false,
    };
  }
}

function prepare(db: Database) {
  // No more of a large document leaves the database than is shown. Few are counted: the length in bytes stands in the row.
  const shown = `id, substr(document, 1, ${MOST_SHOWN}) as document, updated_at, deleted_at,
    octet_length(document) > ${MOST_SHOWN}
      and (octet_length(document) > ${4 * MOST_SHOWN} or length(document) > ${MOST_SHOWN}) as is_cut`;
  // By the list, too: where a copy was removed meanwhile, its numbers may be another's by now.
  const live = `from records where seq = ? and list = ${LIST_OF} and deleted_at is null`;
  return {
    find: db.prepare<[string, string, id: string], ShownRow>(
      `select ${shown} from records where list = ${LIST_OF} and id = ?`,
    ),
    list: db.prepare<[string, string, limit: number, offset: number], { seq: number }>(`
      select seq from records where list = ${LIST_OF} and deleted_at is null
      order by seq limit ? offset ?`),
    record: db.prepare<[seq: number, string, string], ShownRow>(`select ${shown} ${live}`),
    stored: db.prepare<[string, string], { stored: number }>(
      'select stored from runs where instance_id = ? and resource = ?',
    ),
    portion: db.prepare<[string, string, number, number], { seq: number; document: string | null }>(`
      select seq, iif(octet_length(document) <= ${READ_AHEAD}, document, null) as document from records
      where list = ${LIST_OF} and deleted_at is null and seq > ?
      order by seq limit ?`),
    removal: db.prepare<[string]>('select 1 from removals where instance_id = ?'),
    kept: db.prepare<[seq: number, string, string]>(
      `select 1 from records where seq = ? and list = ${LIST_OF}`,
    ),
    large: db.prepare<[seq: number, string, string], { document: string }>(`select document ${live}`),
    pending: db.prepare<[string, string], { pending: number }>(`
      select coalesce(sum(count), 0) as pending from search_queue where list = ${LIST_OF}`),
  };
}

function toStoredRecord(row: ShownRow): StoredRecord {
  return {
    id: row.id,
    document: row.document,
    isCut: row.is_cut === 1,
    updatedAt: row.updated_at,
    deletedAt: row.deleted_at,
  };
}
