import { type ExpressionBuilder, type Selectable, sql } from 'kysely';
import type { Database } from './database.ts';
import type { RecordPage, RecordReader, StoredRecord } from './record-types.ts';
import type { RecordTable, Schema } from './schema.ts';

/** How many documents a stream reads at a time. */
const STREAM_CHUNK = 500;

/** The copy, for reading. */
export class RecordStore implements RecordReader {
  readonly #db: Database;

  constructor(db: Database) {
    this.#db = db;
  }

  async browse(
    instanceId: string,
    resource: string,
    options: { search?: string; offset: number; limit: number },
  ): Promise<RecordPage> {
    const words = (options.search ?? '').split(/\s+/).filter((word) => word !== '');
    const matching = this.#live(instanceId, resource).where((where) =>
      where.and(words.map((word) => containsWord(where, word))),
    );
    const [rows, count] = await Promise.all([
      matching.selectAll().orderBy('seq').offset(options.offset).limit(options.limit).execute(),
      matching.select((select) => select.fn.countAll<number>().as('total')).executeTakeFirstOrThrow(),
    ]);
    return { records: rows.map(toStoredRecord), total: Number(count.total), pending: 0 };
  }

  async find(instanceId: string, resource: string, id: string): Promise<StoredRecord | undefined> {
    const row = await this.#db
      .selectFrom('records')
      .selectAll()
      .where('instance_id', '=', instanceId)
      .where('resource', '=', resource)
      .where('id', '=', id)
      .executeTakeFirst();
    return row === undefined ? undefined : toStoredRecord(row);
  }

  async *stream(instanceId: string, resource: string): AsyncIterable<string> {
    // In portions after the last seq, so that a slow reader never keeps the connection from writers.
    let after = 0;
    for (;;) {
      const rows = await this.#live(instanceId, resource)
        .select(['seq', 'document'])
        .where('seq', '>', after)
        .orderBy('seq')
        .limit(STREAM_CHUNK)
        .execute();
      for (const row of rows) yield row.document;
      const last = rows.at(-1);
      if (last === undefined) return;
      after = last.seq;
    }
  }

  /** How many records the copy of a resource holds, without the deleted ones. */
  async count(instanceId: string, resource: string): Promise<number> {
    const row = await this.#live(instanceId, resource)
      .select((select) => select.fn.countAll<number>().as('total'))
      .executeTakeFirstOrThrow();
    return Number(row.total);
  }

  /** Deletes the whole copy of an instance. */
  async removeAll(instanceId: string): Promise<void> {
    await this.#db.deleteFrom('records').where('instance_id', '=', instanceId).execute();
    await this.#db.updateTable('runs').set({ stored: 0 }).where('instance_id', '=', instanceId).execute();
  }

  #live(instanceId: string, resource: string) {
    return this.#db
      .selectFrom('records')
      .where('instance_id', '=', instanceId)
      .where('resource', '=', resource)
      .where('deleted_at', 'is', null);
  }
}

/**
 * A value of the document holds the word: not a member's name, nor an address in `_links`. The text is looked at
 * first, as it came or as JSON escapes it, so that few documents have to be taken apart.
 */
function containsWord(where: ExpressionBuilder<Schema, 'records'>, word: string) {
  const escaped = [...JSON.stringify(word).slice(1, -1)]
    .map((char) => (char > '\x7f' ? toUnicodeEscapes(char) : char))
    .join('');
  const inText = [...new Set([word, escaped, escaped.replaceAll('/', '\\/')])].map(
    (text) => sql<boolean>`document like ${pattern(text)} escape '\\'`,
  );
  const inValue = sql<boolean>`exists (
    select 1 from json_tree(records.document) as member
    where member.atom like ${pattern(word)} escape '\\' and instr(member.fullkey, '."_links".') = 0)`;
  return where.and([where.or(inText), inValue]);
}

function pattern(text: string): string {
  return `%${text.replace(/[\\%_]/g, '\\$&')}%`;
}

function toUnicodeEscapes(char: string): string {
  return Array.from(
    { length: char.length },
    (_, i) => `\\u${char.charCodeAt(i).toString(16).padStart(4, '0')}`,
  ).join('');
}

function toStoredRecord(row: Selectable<RecordTable>): StoredRecord {
  return { id: row.id, document: row.document, updatedAt: row.updated_at, deletedAt: row.deleted_at };
}
