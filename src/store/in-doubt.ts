import type { Database } from './database.ts';
import type { BatchSeqs } from './parked-batches.ts';
import { LIST_OF, type RunClaim, type RunKey } from './runs.ts';

/** The records of a batch, by the ids that the copy knows them by. */
export interface BatchIds {
  /** Told as new or as deleted: until that is written, the own logic may have them or not. */
  comeOrGone: string[];
  /** Told as changed: it has them in any case, in one form or the other. */
  changed: string[];
}

/** Of a record in doubt, whether the own logic has it in any case, in whatever form. */
type Doubts = ReadonlyMap<string, boolean>;

const NO_DOUBTS: Doubts = new Map();

/**
 * The table of records that the own logic may know otherwise than the copy. Whoever tells a batch notes it before, under
 * its fence, and its note goes in the transaction that writes what was told, or parks the batch: so it stays where the
 * process dies, the own logic throws, or the run is paused or lost in between. A record in doubt is told again when a page
 * brings it, as it is then, whether it differs from the copy or not; and as deleted when a run ends that has not seen it.
 *
 * A note takes the place of those that others have made before. Whoever has lost the run may still be telling: it notes
 * the batch again when that is over, and that note outlasts what the new holder writes, as nobody knows whose telling
 * came last. What it cannot note, as it is killed before, is not known to anybody.
 */
export class InDoubtStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;

  constructor(db: Database) {
    this.#db = db;
    this.#statements = prepare(db);
  }

  /**
   * Notes the records of a batch that is about to be told, in a transaction of its own, and counts the try with it: one
   * that nobody sees the end of, as the process dies or loses the run, is counted, too.
   *
   * @returns false when the run is somebody else's now, or the instance not active any more: nothing was noted, and
   *   nothing is to be told
   */
  note({ instanceId, resource, fence }: RunClaim, ids: BatchIds): Promise<boolean> {
    const { begin, any, remove, insert } = this.#statements;
    return this.#db.writeAtOnce(() => {
      const run = begin.get({ instanceId, resource, fence });
      if (run === undefined) return false;
      const areNoted = any.get(run.list) !== undefined;
      for (const { id, isKnown } of eachOf(ids)) {
        const before = areNoted ? remove.all(run.list, id) : [];
        insert.run(run.list, id, fence, Math.min(isKnown, ...before.map(({ is_known }) => is_known)));
      }
      return true;
    });
  }

  /**
   * Notes them once more when somebody else has the run by now. While the run is ours it changes nothing, as the note
   * from before stands.
   *
   * @returns whether somebody else has it
   */
  noteIfLost({ instanceId, resource, fence }: RunClaim, ids: BatchIds): Promise<boolean> {
    const { lost, insert } = this.#statements;
    return this.#db.writeAtOnce(() => {
      const run = lost.get({ instanceId, resource, fence });
      if (run === undefined) return false;
      for (const { id, isKnown } of eachOf(ids)) insert.run(run.list, id, fence, isKnown);
      return true;
    });
  }

  /** Likewise, for the records of a parked batch. */
  noteSeqsIfLost({ instanceId, resource, fence }: RunClaim, seqs: BatchSeqs): Promise<boolean> {
    const { lost, insertSeq } = this.#statements;
    return this.#db.writeAtOnce(() => {
      const run = lost.get({ instanceId, resource, fence });
      if (run === undefined) return false;
      for (const seq of [...seqs.created, ...seqs.deleted]) insertSeq.run(fence, 0, seq, run.list);
      for (const seq of seqs.changed) insertSeq.run(fence, 1, seq, run.list);
      return true;
    });
  }

  /** The records of a list that are in doubt: hardly ever any. Within {@link Database.atOnce}. */
  findNow(instanceId: string, resource: string): Doubts {
    const rows = this.#statements.all.all(instanceId, resource);
    if (rows.length === 0) return NO_DOUBTS;
    return new Map(rows.map(({ id, is_known }) => [id, is_known === 1]));
  }

  /** Those that the copy does not hold, or as deleted: no page of the run that is at its end has brought them. */
  missing({ instanceId, resource }: RunKey, limit: number): Promise<string[]> {
    return this.#db.atOnce(() =>
      this.#statements.missing.all(instanceId, resource, limit).map(({ id }) => id),
    );
  }

  /**
   * Takes records out of doubt, within the transaction that writes what was told of them under this fence: but not out of
   * those that others have noted since. Where nothing was told, as there is no own logic any more, out of all.
   */
  settleNow(list: number, fence: number, ids: readonly string[]): void {
    if (this.#statements.any.get(list) === undefined) return;
    for (const id of ids) this.#settle(list, fence, id);
  }

  /** Likewise, for records of the copy. */
  settleSeqsNow(list: number, fence: number, seqs: readonly number[]): void {
    const { any, idOf } = this.#statements;
    if (any.get(list) === undefined) return;
    for (const seq of seqs) {
      const id = idOf.get(seq)?.id;
      if (id !== undefined) this.#settle(list, fence, id);
    }
  }

  #settle(list: number, fence: number, id: string): void {
    const { settle, remove } = this.#statements;
    if (settle.run(list, id, fence).changes === 0) remove.all(list, id);
  }
}

function eachOf({ comeOrGone, changed }: BatchIds): { id: string; isKnown: 0 | 1 }[] {
  return [
    ...comeOrGone.map((id) => ({ id, isKnown: 0 as const })),
    ...changed.map((id) => ({ id, isKnown: 1 as const })),
  ];
}

function prepare(db: Database) {
  const again = 'on conflict (list, id, fence) do update set is_known = min(is_known, excluded.is_known)';
  return {
    begin: db.prepare<[RunClaim], { list: number }>(`
      update runs set own_tries = own_tries + 1
      where instance_id = :instanceId and resource = :resource and fence = :fence
        and (select status from instances where id = :instanceId) = 'active'
      returning list`),
    lost: db.prepare<[RunClaim], { list: number }>(`
      select list from runs
      where instance_id = :instanceId and resource = :resource and fence <> :fence
        and (select status from instances where id = :instanceId) <> 'disconnected'`),
    insert: db.prepare<[list: number, id: string, fence: number, isKnown: number]>(`
      insert into in_doubt (list, id, fence, is_known) values (?, ?, ?, ?) ${again}`),
    // If the copy was removed meanwhile, another company's record may have the place by now.
    insertSeq: db.prepare<[fence: number, isKnown: number, seq: number, list: number]>(`
      insert into in_doubt (list, id, fence, is_known)
      select list, id, ?, ? from records where seq = ? and list = ? ${again}`),
    all: db.prepare<[string, string], { id: string; is_known: number }>(
      `select id, min(is_known) as is_known from in_doubt where list = ${LIST_OF} group by id`,
    ),
    any: db.prepare<[list: number]>('select 1 from in_doubt where list = ? limit 1'),
    missing: db.prepare<[string, string, limit: number], { id: string }>(`
      select distinct in_doubt.id from in_doubt
      left join records on records.list = in_doubt.list and records.id = in_doubt.id
      where in_doubt.list = ${LIST_OF} and (records.seq is null or records.deleted_at is not null)
      order by in_doubt.id limit ?`),
    settle: db.prepare<[list: number, id: string, fence: number]>(
      'delete from in_doubt where list = ? and id = ? and fence = ?',
    ),
    idOf: db.prepare<[seq: number], { id: string }>('select id from records where seq = ?'),
    remove: db.prepare<[list: number, id: string], { is_known: number }>(
      'delete from in_doubt where list = ? and id = ? returning is_known',
    ),
  };
}
