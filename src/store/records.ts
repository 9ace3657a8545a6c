import { sql } from 'kysely';
import { ChangeStore } from './changes.ts';
import type { Database } from './database.ts';
import type { ListKey } from './runs.ts';
import { listMark, searchQuery } from './search-words.ts';

/** The search index is a consumer of the change feed, by this name. */
export const SEARCH_CONSUMER = 'search';

/** How many documents a stream reads at a time; a larger one than this (bytes) is read by itself. */
const STREAM_CHUNK = 125;
const READ_AHEAD = 8_192;

/** How many ids it looks up at a time. */
const STREAM_IDS = 80 * STREAM_CHUNK;

/** So much of a document is read for a page, in characters; the rest is in the download. */
const MOST_SHOWN = 100_000;

/** Matches of a search are counted up to here. */
const MOST_COUNTED = 10_000;

const SHOWN = [
  'id',
  'external_id',
  'change_seq',
  'deleted_at',
  sql<string | null>`substr(document, 1, ${sql.lit(MOST_SHOWN)})`.as('document'),
  sql<number | null>`octet_length(document)`.as('bytes'),
] as const;

interface ShownRow {
  external_id: string;
  change_seq: number;
  deleted_at: number | null;
  document: string | null;
  bytes: number | null;
}

/** A record of the copy. */
export interface StoredRecord {
  id: string;
  /** The document's text as the service sent it; of a large one the beginning. Null once it is erased. */
  document: string | null;
  /** Whether it is the beginning alone. */
  isCut: boolean;
  /** When it last changed, in milliseconds since 1970. */
  updatedAt: number;
  /** When a finished run no longer saw it, or null. */
  deletedAt: number | null;
}

/** A live record in a stream, with all of its document. */
interface StreamedRecord extends Pick<StoredRecord, 'id' | 'updatedAt'> {
  document: string;
}

/** One page of the copy for browsing. */
export interface RecordPage {
  records: StoredRecord[];
  /** How many records match in all; of a search, as far as they were counted. */
  total: number;
  /** More match than were counted. */
  hasMore: boolean;
  /** How many records of the list a search does not find yet: their texts are not in the index. */
  pending: number;
  /** Not all words that were typed were looked for. */
  isShortened: boolean;
}

/** Something in a list that the copy cannot keep, for people to look at. */
export interface RejectedRecord {
  reason: string;
  /** How its text begins, without secrets. */
  excerpt: string;
  /** How long its text is, in UTF-16 units. */
  length: number;
  /** When a run met it first, in milliseconds since 1970. */
  at: number;
}

/** The copy was removed while it was read: the reader does not have the whole of it. */
export class CopyRemovedError extends Error {
  override readonly name = 'CopyRemovedError';

  constructor() {
    super('The copy was removed while it was read.');
  }
}

/** The copy, for reading. */
export class RecordStore {
  readonly #db: Database;
  readonly #changes: ChangeStore;

  constructor(db: Database) {
    this.#db = db;
    this.#changes = new ChangeStore(db);
  }

  /** Live records in the order in which they were first copied; `search` finds words by their beginnings. */
  async browse(
    instanceId: string,
    resource: string,
    { search = '', offset, limit }: { search?: string; offset: number; limit: number },
  ): Promise<RecordPage> {
    const list = await this.#list({ instanceId, resource });
    if (list === undefined) return { records: [], total: 0, hasMore: false, pending: 0, isShortened: false };
    const indexed = await this.#changes.find(list.id, SEARCH_CONSUMER);
    const typed = search.trim();
    const query = searchQuery(typed, listMark(list.id));
    const place = { after: 0, limit: MOST_COUNTED + 1 };
    const found = typed === '' ? undefined : await this.#search(list.id, query, place);
    const ids =
      found === undefined
        ? await this.#liveIds(list.id, { after: 0, offset, limit })
        : found.slice(offset, offset + limit);
    const rows = await this.#db
      .selectFrom('records')
      .select(SHOWN)
      .where('id', 'in', [0, ...ids])
      .where('deleted_at', 'is', null)
      .orderBy('id')
      .execute();
    return {
      records: rows.map(toStoredRecord),
      total: found === undefined ? list.stored : Math.min(found.length, MOST_COUNTED),
      hasMore: found !== undefined && found.length > MOST_COUNTED,
      pending: await this.#changes.countPending(list, indexed?.cursor ?? 0),
      isShortened: query.isShortened,
    };
  }

  /** A record, also a deleted one; undefined when there is none, or it was erased for good. */
  async find(instanceId: string, resource: string, id: string): Promise<StoredRecord | undefined> {
    const list = await this.#list({ instanceId, resource });
    if (list === undefined) return undefined;
    const row = await this.#db
      .selectFrom('records')
      .select(SHOWN)
      .where('list', '=', list.id)
      .where('external_id', '=', id)
      .where('erased_at', 'is', null)
      .executeTakeFirst();
    return row && toStoredRecord(row);
  }

  /**
   * Every live record, or all that a search finds, in the order in which they were first copied, read in small portions:
   * memory stays flat.
   *
   * @throws CopyRemovedError when the copy is removed on the way
   */
  async *stream(
    instanceId: string,
    resource: string,
    { search = '' }: { search?: string } = {},
  ): AsyncGenerator<StreamedRecord> {
    const list = await this.#list({ instanceId, resource });
    if (list === undefined) return;
    const typed = search.trim();
    const query = searchQuery(typed, listMark(list.id));
    // In portions behind the last record, so that a slow reader never keeps the connection from writers.
    for (let after = 0; ; ) {
      const place = { after, limit: STREAM_IDS };
      const ids = await (typed === ''
        ? this.#liveIds(list.id, { ...place, offset: 0 })
        : this.#search(list.id, query, place));
      for (let at = 0; at < ids.length || at === 0; at += STREAM_CHUNK) {
        const rows = await this.#readAhead(ids.slice(at, at + STREAM_CHUNK));
        // Else the reader would take a part of a removed copy for the whole.
        if ((await this.#list({ instanceId, resource }))?.id !== list.id) throw new CopyRemovedError();
        for (const { id, external_id, change_seq, document } of rows) {
          const text = document ?? (await this.#documentOf(id));
          if (text !== null) yield { id: external_id, document: text, updatedAt: momentOf(change_seq) };
        }
      }
      const last = ids.at(-1);
      if (last === undefined) return;
      after = last;
    }
  }

  /** Whether anything is kept of an instance's records. */
  async keepsAny(instanceId: string): Promise<boolean> {
    const row = await this.#db
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
    const row = await this.#db
      .selectFrom('lists')
      .select('id')
      .where('instance_id', '=', instanceId)
      .where('removed_at', 'is not', null)
      .executeTakeFirst();
    return row !== undefined;
  }

  async countRejected(list: number): Promise<number> {
    const { count } = await this.#db
      .selectFrom('rejected_records')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('list', '=', list)
      .executeTakeFirstOrThrow();
    return Number(count);
  }

  /** What a list holds that cannot be kept, always in the same order. */
  rejected(list: number, limit: number): Promise<RejectedRecord[]> {
    return this.#db
      .selectFrom('rejected_records')
      .select(['reason', 'excerpt', 'length', 'at'])
      .where('list', '=', list)
      .orderBy('hash')
      .limit(limit)
      .execute();
  }

  #list({ instanceId, resource }: ListKey) {
    return this.#db
      .selectFrom('lists')
      .select(['id', 'stored', 'change_seq'])
      .where('instance_id', '=', instanceId)
      .where('resource', '=', resource)
      .where('removed_at', 'is', null)
      .executeTakeFirst();
  }

  async #liveIds(
    list: number,
    { after, offset, limit }: { after: number; offset: number; limit: number },
  ): Promise<number[]> {
    const rows = await this.#db
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

  #search(
    list: number,
    { groups }: ReturnType<typeof searchQuery>,
    place: { after: number; limit: number },
  ): Promise<number[]> {
    if (groups.length === 0) return Promise.resolve([]);
    return this.#db.dialect.search.find(this.#db, list, groups, place);
  }

  /** Live records among these, with the documents that are not large. */
  #readAhead(ids: readonly number[]) {
    return this.#db
      .selectFrom('records')
      .select([
        'id',
        'external_id',
        'change_seq',
        sql<string | null>`case when octet_length(document) <= ${sql.lit(READ_AHEAD)} then document end`.as(
          'document',
        ),
      ])
      .where('id', 'in', [0, ...ids])
      .where('deleted_at', 'is', null)
      .orderBy('id')
      .execute();
  }

  /** One document; null when its record is deleted by now. */
  async #documentOf(id: number): Promise<string | null> {
    const row = await this.#db
      .selectFrom('records')
      .select('document')
      .where('id', '=', id)
      .where('deleted_at', 'is', null)
      .executeTakeFirst();
    return row?.document ?? null;
  }
}

function momentOf(seq: number): number {
  return Math.round(seq / 1_000);
}

function toStoredRecord(row: ShownRow): StoredRecord {
  return {
    id: row.external_id,
    document: row.document,
    isCut: (row.bytes ?? 0) > Buffer.byteLength(row.document ?? ''),
    updatedAt: momentOf(row.change_seq),
    deletedAt: row.deleted_at,
  };
}
