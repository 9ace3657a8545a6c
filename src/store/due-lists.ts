import { type Kysely, type RawBuilder, sql, type Updateable } from 'kysely';
import { Store } from './database.ts';
import {
  ensureList,
  isActive,
  type List,
  type ListKey,
  lockList,
  scheduleLists,
  stopLists,
} from './lists.ts';
import { findInstance, type ListJob, lastRuns, type Run, startRuns } from './runs.ts';
import type { ListTable, Schema } from './schema.ts';

/** A list that got a job is due again after this time, in milliseconds: Redis may have lost it. */
const LOST_JOB_MS = 30_000;

/** When lists are due: their pauses and intervals, and what a sweep takes. */
export class DueListStore extends Store {
  /**
   * Prepares the lists of all instances for `resources.ts` and the configuration: makes those that are missing, gives
   * checks to those without, and brings full runs forward where an interval has changed.
   *
   * @param resources all lists of an instance, with the interval of those that have none of their own, in milliseconds
   */
  async prepare(
    resources: readonly { name: string; intervalMs: number }[],
    now: number,
    { hasChecks }: { hasChecks: boolean },
  ): Promise<void> {
    await this.db.transact(async (tx) => {
      for (const { name: resource } of resources) {
        const lacking = tx
          .selectFrom('instances')
          .select(['id', sql.val(resource).as('resource')])
          .where('status', '!=', 'disconnected')
          .where(({ not, exists, selectFrom }) => {
            const known = selectFrom('lists').select('lists.id').where('removed_at', 'is', null);
            const own = known.whereRef('instance_id', '=', 'instances.id').where('resource', '=', resource);
            return not(exists(own));
          });
        await tx
          .insertInto('lists')
          .columns(['instance_id', 'resource'])
          .expression(lacking)
          .onConflict((conflict) => conflict.doNothing())
          .execute();
      }
      // An older version, which knew no due times, may have resumed lists. The claim of a list corrects its time.
      const timeless = tx.updateTable('lists').set({ due_at: 0 }).where('due_at', 'is', null);
      await timeless.where(isActive).execute();
      const lists = tx.updateTable('lists').where('full_run', 'is not', null).where('due_at', 'is not', null);
      if (hasChecks) {
        const isDue = { check_due_at: now, due_at: earlier('due_at', sql.val(now)) };
        await lists.set(isDue).where('check_due_at', 'is', null).execute();
      } else await lists.set({ check_due_at: null }).where('check_due_at', 'is not', null).execute();
      // A large list whose full runs are rare would lose that with each start.
      const value = JSON.stringify(resources);
      const { numInsertedOrUpdatedRows: written } = await tx
        .insertInto('settings')
        .values({ name: 'intervals', value })
        .onConflict((old) => old.column('name').doUpdateSet({ value }).where('settings.value', '!=', value))
        .executeTakeFirst();
      if (written === 0n) return;
      for (const { name, intervalMs } of resources) {
        const at = sql<number>`full_at + ${intervalMs}`;
        await lists
          .set({ full_due_at: earlier('full_due_at', at), due_at: earlier('due_at', at) })
          .where('resource', '=', name)
          .where('interval_minutes', 'is', null)
          .where('id', 'not in', tx.selectFrom('runs').select('list').where('finished_at', 'is', null))
          .execute();
      }
    });
  }

  /**
   * Pauses one list: its workers cannot commit any more.
   *
   * @returns false when it is paused already, or its instance is disconnected
   */
  pause(key: ListKey, now: number): Promise<boolean> {
    return this.#change(key, ({ paused_at }) => (paused_at === null ? { paused_at: now } : undefined));
  }

  /** Ends the pause of one list. @returns false when it is not paused, or its instance is disconnected */
  resume(key: ListKey): Promise<boolean> {
    return this.#change(key, ({ paused_at }) => (paused_at === null ? undefined : { paused_at: null }));
  }

  /**
   * Sets the interval of one list; null: as configured.
   *
   * @param intervalMs from the end of its last full run to the next one
   * @returns false when its instance is disconnected
   */
  setInterval(key: ListKey, minutes: number | null, intervalMs: number): Promise<boolean> {
    return this.#change(key, ({ full_at, full_due_at }) => ({
      interval_minutes: minutes,
      full_due_at: full_at === null ? full_due_at : full_at + intervalMs,
    }));
  }

  /**
   * Takes some of the lists that are due, the longest first, and gives those a full run whose full run is due. Each needs
   * a job now. If it got lost, the list is due again after half a minute.
   *
   * @param resources those that this version copies: a list of another one belongs to another version of the app
   * @param limit when it returns fewer, nothing more is due that another worker does not take
   */
  async takeDue(resources: readonly string[], now: number, limit: number): Promise<ListJob[]> {
    const due = (db: Kysely<Schema>) =>
      db
        .selectFrom('lists')
        .select(['id', 'instance_id', 'resource', 'full_due_at'])
        .where('due_at', '<=', now)
        .where('removed_at', 'is', null)
        .where('resource', 'in', [...resources])
        .orderBy('due_at');
    // Mostly nothing is due, which needs no transaction.
    if ((await due(this.db).limit(1).execute()).length === 0) return [];
    return this.db.transact(async (tx) => {
      const lists = await due(tx)
        .limit(limit)
        // What another worker takes needs no second job.
        .$if(this.db.dialect.name === 'postgres', (query) => query.forUpdate().skipLocked())
        .execute();
      const ids = lists.map(({ id }) => id);
      if (ids.length === 0) return [];
      const found = tx.selectFrom('runs').select(['list', 'pages', 'wait_until']).where('list', 'in', ids);
      const open = new Map(
        (await found.where('finished_at', 'is', null).execute()).map((run) => [run.list, run]),
      );
      const starting = lists.filter(({ id, full_due_at }) => !open.has(id) && full_due_at <= now);
      await startRuns(
        tx,
        starting.map(({ id }) => id),
        now,
      );
      const again = tx.updateTable('lists').set({ due_at: now + LOST_JOB_MS });
      await again.where('id', 'in', ids).execute();
      const fresh = new Set(starting);
      return lists.map((list) => {
        const { id, instance_id: instanceId, resource } = list;
        const run = open.get(id) ?? (fresh.has(list) ? { pages: 0, wait_until: null } : undefined);
        return { instanceId, resource, list: id, until: run?.wait_until ?? null, pages: run?.pages };
      });
    });
  }

  /**
   * Takes some lists of active instances that have failed since before a moment: one worker takes each list once.
   *
   * @param limit when it returns fewer, nothing is left
   * @returns each list with its last run that failed
   */
  async takeFailing(
    since: number,
    now: number,
    limit: number,
  ): Promise<(ListKey & { since: number; run: Run | undefined })[]> {
    const failing = this.db
      .selectFrom('lists')
      .select('id')
      .where('failing_since', '<=', since)
      .where('failing_told_at', 'is', null)
      .where(isActive)
      .limit(limit);
    const rows = await this.db.durably((tx) =>
      tx
        .updateTable('lists')
        .set({ failing_told_at: now })
        .where('id', 'in', failing)
        .where('failing_told_at', 'is', null)
        .returning(['id', 'instance_id', 'resource', 'failing_since'])
        .execute(),
    );
    const read = rows.map(async ({ id, instance_id: instanceId, resource, failing_since }) => {
      // A run that has just begun has not met the failure yet.
      const run = (await lastRuns(this.db, id, 'full', 2)).find(({ error_kind }) => error_kind !== null);
      return { instanceId, resource, since: failing_since ?? now, run };
    });
    return Promise.all(read);
  }

  /** Changes a list of an instance that is not disconnected, unless there is nothing to do. @returns whether it did */
  #change(key: ListKey, change: (list: List) => Updateable<ListTable> | undefined): Promise<boolean> {
    return this.db.durably(async (tx) => {
      const instance = await findInstance(tx, key.instanceId);
      if (instance === undefined || instance.status === 'disconnected') return false;
      const list = await lockList(this.db, tx, await ensureList(tx, key));
      const values = list && change(list);
      if (list === undefined || values === undefined) return false;
      await tx.updateTable('lists').set(values).where('id', '=', list.id).execute();
      await (values.paused_at == null ? scheduleLists(tx, key) : stopLists(this.db, tx, key));
      return true;
    });
  }
}

function earlier(column: 'due_at' | 'full_due_at', at: RawBuilder<number>) {
  return sql<number>`case when ${sql.ref(column)} > ${at} then ${at} else ${sql.ref(column)} end`;
}
