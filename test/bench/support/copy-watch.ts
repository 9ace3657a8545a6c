import { setTimeout as sleep } from 'node:timers/promises';
import Sqlite from 'better-sqlite3';

const LOOK_EVERY_MS = 20;

/** How far the copies are. */
export interface Progress {
  /** Pages of the runs that are under way or were last. */
  pages: number;
  records: number;
  runs: number;
  /** Runs that came to their end. */
  finished: number;
  /** Runs that wait for the limit or for a retry. */
  waiting: number;
  failed: number;
}

/** Looks into the app's database from outside, by a connection that cannot write. */
export class CopyWatch {
  readonly #sqlite: Sqlite.Database;
  readonly #progress: Sqlite.Statement<[], Progress>;
  readonly #unfinished: Sqlite.Statement<[string], { count: number }>;

  constructor(databasePath: string) {
    this.#sqlite = new Sqlite(databasePath, { readonly: true });
    this.#progress = this.#sqlite.prepare(
      `select coalesce(sum(pages), 0) as pages, coalesce(sum(records), 0) as records, count(*) as runs,
         count(*) filter (where state = 'idle' and finished_at is not null) as finished,
         count(*) filter (where waiting_for in ('limit', 'retry')) as waiting,
         count(*) filter (where state = 'failed') as failed
       from runs`,
    );
    this.#unfinished = this.#sqlite.prepare(
      "select count(*) as count from runs where instance_id = ? and (state <> 'idle' or finished_at is null)",
    );
  }

  progress(): Progress {
    const progress = this.#progress.get();
    if (progress === undefined || progress.failed > 0)
      throw new Error(`runs failed: ${JSON.stringify(progress)}`);
    return progress;
  }

  /** Pages of each instance so far. */
  pagesOfEach(): Map<string, number> {
    const rows = this.#sqlite
      .prepare<[], { id: string; pages: number }>(
        'select instance_id as id, sum(pages) as pages from runs group by instance_id',
      )
      .all();
    return new Map(rows.map(({ id, pages }) => [id, pages]));
  }

  /** Resolves when every resource of the instance is copied. */
  async complete(instanceId: string): Promise<void> {
    while ((this.#unfinished.get(instanceId)?.count ?? 1) > 0) await sleep(LOOK_EVERY_MS / 4);
  }

  /** How many records are not in the index of the search yet. */
  toIndex(): number {
    const queue = this.#sqlite.prepare<[], { records: number }>(
      'select coalesce(sum(count), 0) as records from search_queue',
    );
    return queue.get()?.records ?? 0;
  }

  /** Resolves when every record is in the index of the search. */
  async indexed(): Promise<void> {
    while (this.toIndex() > 0) await sleep(LOOK_EVERY_MS);
  }

  /** Resolves when the progress is as wanted. @throws when it is not after `limitMs` */
  async until(isReached: (progress: Progress) => boolean, limitMs: number): Promise<Progress> {
    const endsAt = performance.now() + limitMs;
    for (;;) {
      const progress = this.progress();
      if (isReached(progress)) return progress;
      if (performance.now() > endsAt) throw new Error(`no end in sight: ${JSON.stringify(progress)}`);
      await sleep(LOOK_EVERY_MS);
    }
  }

  close(): void {
    this.#sqlite.close();
  }
}
