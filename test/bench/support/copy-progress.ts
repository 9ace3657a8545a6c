import { setTimeout as sleep } from 'node:timers/promises';
import { sql } from 'kysely';
import type { Database } from '../../../src/store/database.ts';

const LOOK_EVERY_MS = 25;

/** How far the copies are, over the newest run of every list. */
export interface Progress {
  pages: number;
  lists: number;
  /** Runs that came to their end. */
  finished: number;
  failed: number;
}

/** @throws Error when a run has failed */
export async function readProgress(db: Database): Promise<Progress> {
  const { rows } = await sql<Progress>`
    select coalesce(sum(pages), 0) as pages, count(*) as lists,
      count(*) filter (where state = 'finished') as finished, count(*) filter (where state = 'failed') as failed
    from runs where id in (select max(id) from runs group by list)`.execute(db);
  const [progress] = rows;
  if (progress === undefined || progress.failed > 0)
    throw new Error(`runs failed: ${JSON.stringify(progress)}`);
  return progress;
}

/** Pages of each instance so far, over all its runs. */
export async function pagesOfEach(db: Database): Promise<Map<string, number>> {
  const rows = await db
    .selectFrom('runs')
    .innerJoin('lists', 'lists.id', 'runs.list')
    .select(({ fn }) => ['instance_id', fn.sum<number>('pages').as('pages')])
    .groupBy('instance_id')
    .execute();
  return new Map(rows.map(({ instance_id, pages }) => [instance_id, Number(pages)]));
}

/** Resolves when the progress is as wanted. @throws when it is not after `limitMs` */
export async function awaitProgress(
  db: Database,
  isReached: (progress: Progress) => boolean,
  limitMs: number,
): Promise<Progress> {
  const endsAt = performance.now() + limitMs;
  for (;;) {
    const progress = await readProgress(db);
    if (isReached(progress)) return progress;
    if (performance.now() > endsAt) throw new Error(`no end in sight: ${JSON.stringify(progress)}`);
    await sleep(LOOK_EVERY_MS);
  }
}

/** Resolves when every list of the instance has been read to its end. */
export async function awaitComplete(db: Database, instanceId: string): Promise<void> {
  for (;;) {
    const open = await db
      .selectFrom('runs')
      .innerJoin('lists', 'lists.id', 'runs.list')
      .select('state')
      .where('instance_id', '=', instanceId)
      .where('state', '<>', 'finished')
      .executeTakeFirst();
    if (open === undefined) return;
    await sleep(LOOK_EVERY_MS / 5);
  }
}
