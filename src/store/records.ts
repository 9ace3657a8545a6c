import { sql } from 'kysely';
import { ChangeStore, SEARCH_CONSUMER } from './changes.ts';
import { Store } from './database.ts';
import { findList, type ListKey } from './lists.ts';
import type { RecordTable } from './schema.ts';
import { listMark, searchQuery } from './search-words.ts';

/** Documents that a stream reads at once. A larger document than this (bytes) is read by itself. */
const STREAM_CHUNK = 125;
const LARGE_DOCUMENT = 8_192;

/** Ids that a stream looks up at once. */
const STREAM_IDS = 80 * STREAM_CHUNK;

/** A page shows so many characters of a document. The download has the rest. */
const MOST_SHOWN = 100_000;

/** Matches of a search are counted up to here. */
const MOST_COUNTED = 10_000;

export interface StoredRecord {
  id: string;
  /** The document's text as the service sent it, or the beginning of a large one. Null once it is erased. */
  document: string | null;
  /** Whether the document is a beginning. */
  isCut: boolean;
  /** When it last changed, in milliseconds since 1970. */
  updatedAt: number;
  /** When a finished run no longer saw it, or null. */
  deletedAt: number | null;
}

/** A live record in a stream, with its whole document. */
interface StreamedRecord extends Pick<StoredRecord, 'id' | 'updatedAt'> {
  document: string;
}

/** One page of the copy for browsing. */
interface RecordPage {
  records: StoredRecord[];
  /** How many records match. A search counts up to ten thousand. */
  total: number;
  /** More match than were counted. */
  hasMore: boolean;
  /** Records that a search does not find yet: the index lacks their texts. */
  pending: number;
  /** The search left some of the typed words out. */
  isShortened: boolean;
}

/** How current the copy of a list is. Null: not yet. */
export interface Freshness {
  fullAt: number | null;
  checkedAt: number | null;
}

/** An item of a list that the copy cannot keep. */
interface RejectedRecord {
  reason: string;
  /** How its text begins. */
  excerpt: string;
  /** How long its text is, in UTF-16 units. */
  length: number;
  /** When a run met it first, in milliseconds since 1970. */
  at: number;
}

/** Somebody removed the copy while it was read: the reader has a part of it. */
export class CopyRemovedError extends Error {
  override readonly name = 'CopyRemovedError';

  constructor() {
    super('The copy was removed while it was read.');
  }
}

/** The copy, for reading. */
export class RecordStore extends Store {
  /** Live records in the order in which they were first copied. `search` finds words by their beginnings. */
  async browse(
    instanceId: string,
    resource: string,
    { search = '', offset, limit }: { search?: string; offset: number; limit: number },
  ): Promise<RecordPage> {
    const list = await findList(this.db, { instanceId, resource });
    if (list === undefined) return { records: [], total: 0, hasMore: false, pending: 0, isShortened: false };
    const indexed = await new ChangeStore(this.db).progress([list.id], SEARCH_CONSUMER);
    const isSearch = search.trim() !== '';
    const found = isSearch ? await this.#search(list.id, search, 0, MOST_COUNTED + 1) : [];
    const ids = isSearch
      ? found.slice(offset, offset + limit)
      : await this.#liveIds(list.id, 0, limit, offset);
    const rows = await this.#shown()
      .where('id', 'in', [0, ...ids])
      .where('deleted_at', 'is', null)
      .orderBy('id')
      .execute();
    return {
      records: rows.map(toStoredRecord),
      total: isSearch ? Math.min(found.length, MOST_COUNTED) : list.stored,
      hasMore: found.length > MOST_COUNTED,
      pending: indexed.get(list.id)?.pending ?? 0,
      isShortened: searchQuery(search, '').isShortened,
    };
  }

  /** When a list was last read to its end, and when its first pages were, in milliseconds since 1970. */
  async freshness(instanceId: string, resource: string): Promise<Freshness> {
    const list = await findList(this.db, { instanceId, resource });
    return { fullAt: list?.full_at ?? null, checkedAt: list?.checked_at ?? null };
  }

  /** A record, also a deleted one. Undefined when there is none, or it was erased for good. */
  async find(instanceId: string, resource: string, id: string): Promise<StoredRecord | undefined> {
    const list = await findList(this.db, { instanceId, resource });
    const row = await this.#shown()
      .where((eb) => eb.and({ list: list?.id ?? 0, external_id: id }))
      .where('erased_at', 'is', null)
      .executeTakeFirst();
    return row && toStoredRecord(row);
  }

  /**
   * Every live record, or all that a search finds, in the order in which they were first copied. It reads small portions,
   * so that memory stays flat and a slow reader keeps no connection.
   *
   * @throws CopyRemovedError when the copy is removed on the way
   */
  async *stream(
    instanceId: string,
    resource: string,
    { search = '' }: { search?: string } = {},
  ): AsyncGenerator<StreamedRecord> {
    const key: ListKey = { instanceId, resource };
    const list = await findList(this.db, key);
    if (list === undefined) return;
    for (let after: number | undefined = 0; after !== undefined; ) {
      const ids: number[] = await (search.trim() === ''
        ? this.#liveIds(list.id, after, STREAM_IDS)
        : this.#search(list.id, search, after, STREAM_IDS));
      for (let at = 0; at < ids.length || at === 0; at += STREAM_CHUNK) {
        const rows = await this.#liveRecords(ids.slice(at, at + STREAM_CHUNK));
        // Else the reader would take a part of a removed copy for the whole.
        if ((await findList(this.db, key))?.id !== list.id) throw new CopyRemovedError();
        for (const { id, external_id, change_seq, document } of rows) {
          const text = document ?? (await this.#documentOf(id));
          if (text !== null) yield { id: external_id, document: text, updatedAt: momentOf(change_seq) };
        }
      }
      after = ids.at(-1);
    }
  }

  /** Whether the copy holds anything of an instance's records. */
  async keepsAny(instanceId: string): Promise<boolean> {
    const row = await this.db
      .selectFrom('lists')
      .select('id')
      .where('instance_id', '=', instanceId)
      .where('removed_at', 'is', null)
      .where((eb) =>
        eb.or([
          eb('change_seq', '>', 0),
          eb('id', 'in', (rejected) => rejected.selectFrom('rejected_records').select('list')),
        ]),
      )
      .executeTakeFirst();
    return row !== undefined;
  }

  /** Whether a copy of the instance is being removed. */
  async isGoing(instanceId: string): Promise<boolean> {
    const lists = this.db.selectFrom('lists').select('id').where('instance_id', '=', instanceId);
    return (await lists.where('removed_at', 'is not', null).executeTakeFirst()) !== undefined;
  }

  /** Counts what lists hold that the copy cannot keep, by list; a list without any is missing. */
  async countRejected(lists: readonly number[]): Promise<Map<number, number>> {
    const rows = await this.db
      .selectFrom('rejected_records')
      .select(({ fn }) => ['list', fn.countAll<number>().as('count')])
      .where('list', 'in', [0, ...lists])
      .groupBy('list')
      .execute();
    return new Map(rows.map(({ list, count }) => [list, count]));
  }

  /** What a list holds that the copy cannot keep, always in the same order. */
  rejected(list: number, limit: number): Promise<RejectedRecord[]> {
    return this.db
      .selectFrom('rejected_records')
      .select(['reason', 'excerpt', 'length', 'at'])
      .where('list', '=', list)
      .orderBy('hash')
      .limit(limit)
      .execute();
  }

  async #liveIds(list: number, after: number, limit: number, offset = 0): Promise<number[]> {
    const rows = await this.db
      .selectFrom('seen')
      .select('record')
      .where('list', '=', list)
      .where('record', '>', after)
      .orderBy('record')
      .limit(limit)
      .offset(offset)
      .execute();
    return rows.map(({ record }) => record);
  }

  async #search(list: number, typed: string, after: number, limit: number): Promise<number[]> {
    const { groups } = searchQuery(typed, listMark(list));
    return groups.length === 0 ? [] : this.db.dialect.search.find(this.db, list, groups, { after, limit });
  }

  #shown() {
    return this.db
      .selectFrom('records')
      .select(['external_id', 'change_seq', 'deleted_at'])
      .select(sql<string | null>`substr(document, 1, ${sql.lit(MOST_SHOWN)})`.as('document'))
      .select(sql<number | null>`octet_length(document)`.as('bytes'));
  }

  /** Live records among these, with the documents that are not large. */
  #liveRecords(ids: readonly number[]) {
    const isSmall = sql`octet_length(document) <= ${sql.lit(LARGE_DOCUMENT)}`;
    return this.db
      .selectFrom('records')
      .select(['id', 'external_id', 'change_seq'])
      .select(sql<string | null>`case when ${isSmall} then document end`.as('document'))
      .where('id', 'in', [0, ...ids])
      .where('deleted_at', 'is', null)
      .orderBy('id')
      .execute();
  }

  /** One document; null when its record is deleted by now. */
  async #documentOf(id: number): Promise<string | null> {
    const records = this.db.selectFrom('records').select('document').where('id', '=', id);
    return (await records.where('deleted_at', 'is', null).executeTakeFirst())?.document ?? null;
  }
}

function momentOf(seq: number): number {
  return Math.round(seq / 1_000);
}

function toStoredRecord(
  row: Pick<RecordTable, 'external_id' | 'change_seq' | 'deleted_at' | 'document'> & { bytes: number | null },
): StoredRecord {
  return {
    id: row.external_id,
    document: row.document,
    isCut: (row.bytes ?? 0) > Buffer.byteLength(row.document ?? ''),
    updatedAt: momentOf(row.change_seq),
    deletedAt: row.deleted_at,
  };
}
