import { Worker } from 'bullmq';

/**
 * BullMQ's worker, but for one thing: that renews the locks of the jobs that it is at by their ids alone. Where a job is
 * lost, as Redis was emptied or the process stood still, and comes back to the same worker while its first turn goes on,
 * the end of that one would end the renewal for the second: which would lose the job likewise, and so on without end.
 * Here the turn that began last keeps its lock.
 */
export class LockKeepingWorker<Data> extends Worker<Data> {
  /** Of each job that is under way here, the turn that began last. */
  readonly #turns = new Map<string, { token: string; since: number }>();

  override async processJob(...[job, token, fetchesNext]: Parameters<Worker<Data>['processJob']>) {
    const id = job.id ?? '';
    const turn = { token, since: job.processedOn ?? Date.now() };
    this.#turns.set(id, turn);
    try {
      return await super.processJob(job, token, fetchesNext);
    } finally {
      const last = this.#turns.get(id);
      if (last === turn) this.#turns.delete(id);
      else if (last !== undefined) this.lockManager.trackJob(id, last.token, last.since);
    }
  }
}
