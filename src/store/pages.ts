import { sql, type Transaction } from 'kysely';
import { type Database, isSame, lockList, nextSeq } from './database.ts';
import { type PageItem, type PageTexts, type RejectedItem, readItems } from './page-items.ts';
import type { Run, RunClaim } from './runs.ts';
import type { Schema } from './schema.ts';

/** Rows of one statement: databases take some ten thousand values at a time. */
const ROWS_AT_ONCE = 500;

/** Rejected records of a list that are kept for a look. */
const MOST_REJECTED = 100;

/** How much of a rejected record's text is kept, in UTF-16 units; and how far behind it a secret is looked for. */
const EXCERPT_LENGTH = 500;
const BEHIND_EXCERPT = 256;

/** A page as it came, and what it took to get it. */
export interface FetchedPage extends PageTexts {
  /** Where it leads; null is the end. */
  next: string | null;
  requests: number;
  refused: number;
}

/** Writing the pages of a run. */
export class PageStore {
  readonly #db: Database;
  readonly #hideSecrets: (text: string) => string;

  /** @param hideSecrets leaves secrets out of what is kept of rejected records */
  constructor(db: Database, hideSecrets = (text: string) => text) {
    this.#db = db;
    this.#hideSecrets = hideSecrets;
  }

  /**
   * Writes what a page changes, what it has seen, and the cursor, in one transaction.
   *
   * @param startedFrom the cursor that the page was fetched by
   * @returns the run as it is now, and whether anything changed; undefined, with nothing written, when the run is
   *   another worker's, paused or ended by now, or the database has lost the commit before
   */
  commit(
    claim: RunClaim,
    startedFrom: string | null,
    page: FetchedPage,
    now: number,
  ): Promise<{ run: Run; hasChanges: boolean } | undefined> {
    const { items, rejected } = readItems(page);
    return this.#db.transact(async (transaction) => {
      const list = await lockList(this.#db, transaction, claim.list);
      if (list === undefined || !(await holds(transaction, claim, startedFrom))) return undefined;
      const known = await findKnown(transaction, claim.list, [...items.keys()]);

      let seq = nextSeq(list.change_seq);
      const fresh: ReturnType<typeof freshRow>[] = [];
      const seen: number[] = [];
      const counts = { created: 0, changed: 0, stored: 0 };
      for (const item of items.values()) {
        const row = known.get(item.id);
        // Erased for good, though the service still sends it.
        if (row !== undefined && row.erased_at !== null) continue;
        if (row !== undefined && row.deleted_at === null) {
          seen.push(row.id);
          if (row.hash === item.hash) continue;
          counts.changed++;
          fresh.push(freshRow(claim.list, item, seq++, row.created_seq));
        } else {
          counts.created++;
          fresh.push(freshRow(claim.list, item, seq, seq));
          seq++;
        }
      }
      for (let at = 0; at < fresh.length; at += ROWS_AT_ONCE) {
        const written = await upsert(transaction, fresh.slice(at, at + ROWS_AT_ONCE));
        for (const row of written) if (row.created_seq === row.change_seq) seen.push(row.id);
      }
      const newlySeen = await noteSeen(transaction, claim, seen);
      if (fresh.length > 0) {
        await transaction
          .updateTable('lists')
          .set({ change_seq: seq - 1, stored: list.stored + counts.created })
          .where('id', '=', claim.list)
          .execute();
      }
      if (rejected.length > 0) await this.#keepRejected(transaction, claim, rejected, now);
      const run = await transaction
        .updateTable('runs')
        .set((old) => ({
          cursor: page.next,
          state: 'running',
          pages: old('pages', '+', 1),
          records: old('records', '+', page.items.length - rejected.length),
          seen: old('seen', '+', newlySeen),
          created: old('created', '+', counts.created),
          changed: old('changed', '+', counts.changed),
          rejected: old('rejected', '+', rejected.length),
          unreadable: old('unreadable', '+', rejected.filter(({ isUnreadable }) => isUnreadable).length),
          requests: old('requests', '+', page.requests),
          refused: old('refused', '+', page.refused),
          attempt: 0,
          stuck_since: null,
          error_kind: null,
          error_detail: null,
          waiting_for: null,
          wait_until: null,
        }))
        .where('id', '=', claim.run)
        .returningAll()
        .executeTakeFirstOrThrow();
      return { run, hasChanges: fresh.length > 0 };
    });
  }

  async #keepRejected(
    transaction: Transaction<Schema>,
    { list, run }: RunClaim,
    items: readonly RejectedItem[],
    now: number,
  ): Promise<void> {
    const { count } = await transaction
      .selectFrom('rejected_records')
      .select(({ fn }) => fn.countAll<number>().as('count'))
      .where('list', '=', list)
      .executeTakeFirstOrThrow();
    let left = MOST_REJECTED - Number(count);
    for (const { text, hash, reason } of items) {
      const { numUpdatedRows } = await transaction
        .updateTable('rejected_records')
        .set({ run })
        .where('list', '=', list)
        .where('hash', '=', hash)
        .executeTakeFirst();
      if (numUpdatedRows > 0n || left-- <= 0) continue;
      const hidden = this.#hideSecrets(text.slice(0, EXCERPT_LENGTH + BEHIND_EXCERPT));
      const end = text.length > EXCERPT_LENGTH + BEHIND_EXCERPT ? hidden.length - BEHIND_EXCERPT : hidden.length;
      const excerpt = hidden.slice(0, Math.max(0, Math.min(end, EXCERPT_LENGTH)));
      await transaction
        .insertInto('rejected_records')
        .values({ list, hash, reason, excerpt: excerpt.toWellFormed(), length: text.length, at: now, run })
        .execute();
    }
  }
}

/** Whether a run is still the holder's, and stands where the holder's last commit left it. */
async function holds(transaction: Transaction<Schema>, { run, fence }: RunClaim, cursor: string | null) {
  const found = await transaction
    .selectFrom('runs')
    .select('id')
    .where('id', '=', run)
    .where('fence', '=', fence)
    .where(isSame('cursor', cursor))
    .executeTakeFirst();
  return found !== undefined;
}

async function findKnown(transaction: Transaction<Schema>, list: number, ids: readonly string[]) {
  const known = new Map<
    string,
    { id: number; hash: string | null; created_seq: number; deleted_at: number | null; erased_at: number | null }
  >();
  for (let at = 0; at < ids.length; at += ROWS_AT_ONCE) {
    const rows = await transaction
      .selectFrom('records')
      .select(['id', 'external_id', 'hash', 'created_seq', 'deleted_at', 'erased_at'])
      .where('list', '=', list)
      .where('external_id', 'in', ids.slice(at, at + ROWS_AT_ONCE))
      .execute();
    for (const row of rows) known.set(row.external_id, row);
  }
  return known;
}

function freshRow(list: number, item: PageItem, seq: number, createdSeq: number) {
  return {
    list,
    external_id: item.id,
    hash: item.hash,
    change_seq: seq,
    created_seq: createdSeq,
    document: item.text.toString(),
  };
}

function upsert(transaction: Transaction<Schema>, rows: ReturnType<typeof freshRow>[]) {
  return transaction
    .insertInto('records')
    .values(rows)
    .onConflict((conflict) =>
      conflict.columns(['list', 'external_id']).doUpdateSet((eb) => ({
        hash: eb.ref('excluded.hash'),
        change_seq: eb.ref('excluded.change_seq'),
        created_seq: eb.ref('excluded.created_seq'),
        deleted_at: null,
        document: eb.ref('excluded.document'),
      })),
    )
    .returning(['id', 'change_seq', 'created_seq'])
    .execute();
}

/** @returns how many of these records the run had not seen before */
async function noteSeen(transaction: Transaction<Schema>, { list, run }: RunClaim, records: readonly number[]) {
  let count = 0n;
  for (let at = 0; at < records.length; at += ROWS_AT_ONCE) {
    const { numInsertedOrUpdatedRows = 0n } = await transaction
      .insertInto('seen')
      .values(records.slice(at, at + ROWS_AT_ONCE).map((record) => ({ list, record, run })))
      .onConflict((conflict) =>
        conflict
          .columns(['list', 'record'])
          .doUpdateSet({ run })
          .where(sql.ref('seen.run'), '<', run),
      )
      .executeTakeFirst();
    count += numInsertedOrUpdatedRows;
  }
  return Number(count);
}
