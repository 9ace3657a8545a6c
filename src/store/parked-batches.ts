import type { Database } from './database.ts';
import { PORTION_LENGTH } from './portion.ts';
import { LIST_OF, type RunClaim, type RunKey } from './runs.ts';

/** So many batches of a list wait at the most: behind them its pages wait. */
const MOST_PARKED = 1_000;

const NONE: ReadonlySet<number> = new Set();

/** The records of a batch, by `seq`. */
export interface BatchSeqs {
  created: number[];
  changed: number[];
  deleted: number[];
}

/** Why a batch is parked. */
export interface Parking {
  /** In words for an administrator. */
  error: string;
  /** How often the own logic was called with it. */
  tries: number;
}

/** A place of the table, and what is known of the tries of its batch. */
interface Tried extends Pick<ParkedBatch, 'tries' | 'error' | 'tried_at'> {
  place: number;
}

/** A parked batch whose turn it is. */
export interface DueBatch extends Tried {
  /** Its records. */
  seqs: BatchSeqs;
  /** The records' texts as they are now: without those that a later batch has told already. */
  created: string[];
  changed: string[];
  deleted: string[];
}

/** A parked batch, for people to look at. */
export interface ParkedBatch extends Parking {
  /** How many records it has, and the id of the first. */
  count: number;
  first_id: string | null;
  /**
   * Milliseconds since 1970. `tried_at` is 0 when it is to be tried at once, and ahead when it has to wait until then:
   * runs that begin before leave it alone. A further try never lies before the start of its run, also if the clock was set
   * back meanwhile. A run that goes on at its place after a failure moves it back to before it began.
   */
  parked_at: number;
  tried_at: number;
}

/**
 * The table of batches that the own logic did not take. It holds no documents, only which records: when a batch is tried
 * again, each of them comes as it is in the copy then, so that nothing older follows on something newer. A record that
 * was deleted since, or is back, is left out: that is told by a batch of its own. And what was parked as changed is told
 * as new when the own logic may have it no more.
 */
export class ParkedStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
  }

  /** Parks a batch, within the transaction that writes its records. @param now milliseconds since 1970 */
  parkNow(
    list: number,
    { created, changed, deleted }: BatchSeqs,
    { tries, error }: Parking,
    now: number,
  ): void {
    const seqs = { created, changed, deleted };
    this.#statements.park.run(list, JSON.stringify(seqs), countOf(seqs), tries, error, now, now);
  }

  count({ instanceId, resource }: RunKey): Promise<number> {
    return this.#db.atOnce(() => this.#statements.count.get(instanceId, resource)?.count ?? 0);
  }

  /** Whether no more can be parked of a list. */
  async isFull(key: RunKey): Promise<boolean> {
    return (await this.count(key)) >= MOST_PARKED;
  }

  /**
   * The batch that was tried longest ago. One whose records are large by now is made two: this one keeps the first of
   * them, the others wait as a batch of their own.
   *
   * @param triedBefore milliseconds since 1970: when the run began, so that it tries each batch once, and once
   *   more whenever it starts again after a failure
   * @returns undefined when there is none, or a batch cannot be made two as the claim is not the newest any more
   */
  async nextDue(claim: RunClaim, triedBefore: number): Promise<DueBatch | undefined> {
    const { due, shorten, split } = this.#statements;
    const found = await this.#db.atOnce(() => {
      const row = due.get(claim.instanceId, claim.resource, triedBefore);
      return row && { ...row, ...this.#read(this.#asToldNow(claim, JSON.parse(row.seqs))) };
    });
    if (found === undefined) return undefined;
    const { place, tries, error, tried_at, texts, told, left } = found;
    if (countOf(left) > 0) {
      const isOurs = await this.#db.writeAtOnce(() => {
        const first = { ...claim, place, seqs: JSON.stringify(told), count: countOf(told) };
        if (shorten.run(first).changes === 0) return false;
        split.run(JSON.stringify(left), countOf(left), place);
        return true;
      });
      if (!isOurs) return undefined;
    }
    return { place, tries, error, tried_at, seqs: told, ...texts };
  }

  /**
   * Of these records of the copy, those that the own logic may not have: it has not taken them as new, and they are parked
   * as such; or nobody knows whether it has, or whether it was told that they are gone. Within {@link Database.atOnce}.
   */
  untakenNow({ instanceId, resource }: RunKey, seqs: readonly number[]): ReadonlySet<number> {
    if (seqs.length === 0) return NONE;
    const rows = this.#statements.untaken.all({ instanceId, resource, seqs: JSON.stringify(seqs) });
    return new Set(rows.map(({ seq }) => seq));
  }

  /** One that was deleted and came back since may be in another batch as new. */
  #asToldNow(key: RunKey, { created, changed, deleted }: BatchSeqs): BatchSeqs {
    const untaken = this.untakenNow(key, changed);
    if (untaken.size === 0) return { created, changed, deleted };
    return {
      created: [...created, ...changed.filter((seq) => untaken.has(seq))],
      changed: changed.filter((seq) => !untaken.has(seq)),
      deleted,
    };
  }

  /** The texts of the first of these records, up to a portion, and which come with it and which are left. */
  #read(seqs: BatchSeqs) {
    const { live, gone } = this.#statements;
    const texts: Pick<DueBatch, keyof BatchSeqs> = { created: [], changed: [], deleted: [] };
    const told: BatchSeqs = { created: [], changed: [], deleted: [] };
    const left: BatchSeqs = { created: [], changed: [], deleted: [] };
    let length = 0;
    for (const kind of ['created', 'changed', 'deleted'] as const) {
      for (const seq of seqs[kind]) {
        if (length >= PORTION_LENGTH) {
          left[kind].push(seq);
          continue;
        }
        told[kind].push(seq);
        const document = (kind === 'deleted' ? gone : live).get(seq)?.document;
        if (document === undefined) continue;
        texts[kind].push(document);
        length += document.length;
      }
    }
    return { texts, told, left };
  }

  /** Takes a batch out that the own logic has taken, if the claim is still the newest. @returns whether it is */
  take(claim: RunClaim, place: number): Promise<boolean> {
    return this.#db.writeAtOnce(() => this.#statements.take.run({ ...claim, place }).changes > 0);
  }

  /**
   * Counts a further try of a batch before it is made, if the claim is still the newest: so it is the only one of this
   * run, also if it takes the process with it, or the run.
   *
   * @param error what is said of it until its end is known
   * @param now milliseconds since 1970
   * @returns whether the claim is the newest
   */
  begin(claim: RunClaim, place: number, error: string, now: number): Promise<boolean> {
    return this.#db.writeAtOnce(
      () => this.#statements.begin.run({ ...claim, place, error, now }).changes > 0,
    );
  }

  /** Takes back that a try was begun: it says nothing about the batch, whose turn it is still. */
  putBack(claim: RunClaim, { place, tries, error, tried_at }: Tried): Promise<boolean> {
    const before = { ...claim, place, tries, error, tried_at };
    return this.#db.writeAtOnce(() => this.#statements.putBack.run(before).changes > 0);
  }

  /**
   * Notes that the own logic has not taken a batch in the try that was begun, if the claim is still the newest.
   *
   * @param notBefore now, or until when the batch has to wait: milliseconds since 1970
   * @returns whether it is
   */
  keep(claim: RunClaim, place: number, error: string, notBefore: number): Promise<boolean> {
    return this.#db.writeAtOnce(
      () => this.#statements.keep.run({ ...claim, place, error, notBefore }).changes > 0,
    );
  }

  /** Makes all batches of an instance due at once. @returns the resources that have any */
  async makeDue(instanceId: string): Promise<string[]> {
    const rows = await this.#db.writeAtOnce(() => this.#statements.hurry.all(instanceId));
    const lists = new Set(rows.map(({ list }) => list));
    return this.#db.atOnce(() =>
      [...lists].flatMap((list) => this.#statements.resource.get(list)?.resource ?? []),
    );
  }

  /** Batches of a list, those that are tried next first. */
  list({ instanceId, resource }: RunKey, limit: number): Promise<ParkedBatch[]> {
    return this.#db.atOnce(() => this.#statements.some.all(instanceId, resource, limit));
  }
}

function countOf({ created, changed, deleted }: BatchSeqs): number {
  return created.length + changed.length + deleted.length;
}

function prepare(db: Database) {
  const ours = `place = :place and exists (
    select 1 from runs where instance_id = :instanceId and resource = :resource and fence = :fence)`;
  const list = '(select list from runs where instance_id = :instanceId and resource = :resource)';
  const notBefore = (moment: string) =>
    `max(${moment}, coalesce((select started_at from runs where runs.list = parked_batches.list), 0))`;
  return {
    park: db.prepare<[number, string, number, number, string, number, number]>(`
      insert into parked_batches (list, seqs, count, tries, error, parked_at, tried_at)
      values (?, ?, ?, ?, ?, ?, ?)`),
    count: db.prepare<[string, string], { count: number }>(
      `select count(*) as count from parked_batches where list = ${LIST_OF}`,
    ),
    due: db.prepare<[string, string, triedBefore: number], Tried & { seqs: string }>(`
      select place, seqs, tries, error, tried_at from parked_batches
      where list = ${LIST_OF} and tried_at < ? order by tried_at, place limit 1`),
    live: db.prepare<[seq: number], { document: string }>(
      'select document from records where seq = ? and deleted_at is null',
    ),
    gone: db.prepare<[seq: number], { document: string }>(
      'select document from records where seq = ? and deleted_at is not null',
    ),
    untaken: db.prepare<[RunKey & { seqs: string }], { seq: number }>(`
      select json_each.value as seq from parked_batches, json_each(parked_batches.seqs, '$.created')
      where parked_batches.list = ${list} and json_each.value in (select value from json_each(:seqs))
      union all
      select records.seq from in_doubt join records on records.list = in_doubt.list and records.id = in_doubt.id
      where in_doubt.list = ${list} and in_doubt.is_known = 0
        and records.seq in (select value from json_each(:seqs))`),
    shorten: db.prepare<[Record<string, string | number>]>(
      `update parked_batches set seqs = :seqs, count = :count where ${ours}`,
    ),
    split: db.prepare<[left: string, count: number, place: number]>(`
      insert into parked_batches (list, seqs, count, tries, error, parked_at, tried_at)
      select list, ?, ?, tries, error, parked_at, tried_at from parked_batches where place = ?`),
    take: db.prepare<[Record<string, string | number>]>(`delete from parked_batches where ${ours}`),
    begin: db.prepare<[Record<string, string | number>]>(
      `update parked_batches set tries = tries + 1, error = :error, tried_at = ${notBefore(':now')} where ${ours}`,
    ),
    putBack: db.prepare<[Record<string, string | number>]>(
      `update parked_batches set tries = :tries, error = :error, tried_at = :tried_at where ${ours}`,
    ),
    keep: db.prepare<[Record<string, string | number>]>(
      `update parked_batches set error = :error, tried_at = ${notBefore(':notBefore')} where ${ours}`,
    ),
    hurry: db.prepare<[string], { list: number }>(`
      update parked_batches set tried_at = 0
      where list in (select list from runs where instance_id = ?) returning list`),
    resource: db.prepare<[list: number], { resource: string }>('select resource from runs where list = ?'),
    some: db.prepare<[string, string, limit: number], ParkedBatch>(`
      select count, tries, error, parked_at, tried_at, (
        select id from records where seq = coalesce(
          seqs ->> '$.created[0]', seqs ->> '$.changed[0]', seqs ->> '$.deleted[0]')) as first_id
      from parked_batches where list = ${LIST_OF} order by tried_at, place limit ?`),
  };
}
