import { HANDLER_CONSUMER } from '../changes/handler-consumer.ts';
import type { Lagging } from '../store/changes.ts';
import type { DisconnectOptions } from '../store/disconnect.ts';
import type { ListKey, ListStatus, OpenRun } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import type { Resource } from './resource.ts';
import type { StatusReader } from './status.ts';
import type { InstanceControl, InstanceStatus, ListProblems } from './status-types.ts';

/** What an administrator's buttons work with. */
interface ControlParts
  extends Pick<Stores, 'instances' | 'tokens' | 'runs' | 'deletions' | 'changes' | 'removals'> {
  resources: readonly Resource[];
  status: StatusReader;
  /** Sees to it that these runs have a job, now. */
  enqueueRuns: (runs: readonly OpenRun[]) => Promise<void>;
  /** Sees to it that these lists have a delivery, now. */
  enqueueDeliveries: (lists: readonly Lagging[]) => Promise<void>;
  /** What keeps the whole app from copying; without it, nothing does. */
  watch?: { readonly notice: string | undefined };
  now?: () => number;
}

/** What an administrator does to an instance, or an operator from the command line. */
export class SyncControl implements InstanceControl {
  readonly #parts: ControlParts;

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  async status(instanceId: string): Promise<InstanceStatus | undefined> {
    const status = await this.#parts.status.read(instanceId);
    const notice = this.#parts.watch?.notice;
    return status === undefined || notice === undefined ? status : { ...status, notice };
  }

  problems(instanceId: string): Promise<Record<string, ListProblems>> {
    return this.#parts.status.readProblems(instanceId);
  }

  /** Starts what is not under way; what waits to be tried again is tried at once, and what is stuck begins anew. */
  async syncNow(instanceId: string, resource?: string): Promise<boolean> {
    const open = await this.#parts.runs.start(instanceId, this.#names(resource), this.#now(), {
      retries: true,
    });
    if (open === undefined) return false;
    await this.#parts.enqueueRuns(open);
    return true;
  }

  /** Stops before the next request; progress stays. */
  pause(instanceId: string): Promise<boolean> {
    return this.#parts.instances.setStatus(instanceId, 'paused', { from: ['active'] });
  }

  /** Goes on where it stopped; what was finished comes round again in its time. */
  async resume(instanceId: string): Promise<boolean> {
    const { instances, runs, enqueueRuns } = this.#parts;
    if (!(await instances.setStatus(instanceId, 'active', { from: ['paused'] }))) return false;
    const lists = await runs.lists(instanceId);
    await enqueueRuns(
      lists.flatMap(({ resource, run }) =>
        run === undefined || run.finished_at !== null
          ? []
          : [{ instanceId, resource, run: run.id, until: run.wait_until }],
      ),
    );
    await this.#deliver(lists);
    return true;
  }

  async retry(instanceId: string, resource?: string): Promise<boolean> {
    const lists = await this.#lists(instanceId, resource);
    for (const { id } of lists) await this.#parts.changes.retry(id, HANDLER_CONSUMER);
    await this.#deliver(lists);
    return lists.length > 0;
  }

  async replay(instanceId: string, resource?: string, record?: string): Promise<boolean> {
    const { changes } = this.#parts;
    const lists = await this.#lists(instanceId, resource);
    let isAny = false;
    for (const { id } of lists) {
      if (record === undefined) await changes.replayList(id, HANDLER_CONSUMER);
      isAny = record === undefined || (await changes.replayRecord(id, record)) || isAny;
    }
    await this.#deliver(lists);
    return isAny;
  }

  async confirmDeletions(instanceId: string, resource?: string): Promise<boolean> {
    const { runs, deletions } = this.#parts;
    const lists = await this.#lists(instanceId, resource);
    let isAny = false;
    for (const { id } of lists) {
      const run = await runs.lastFinished(id);
      if (!run?.held) continue;
      isAny = true;
      const portion = { beforeRun: run.id, counter: run.id };
      for (let after: number | undefined = 0; after !== undefined; ) {
        const marked = await deletions.markPortion(id, portion, after, this.#now());
        after = marked === 'lost' ? undefined : marked.next;
      }
      await runs.releaseHeld(run.id);
    }
    await this.#deliver(lists);
    return isAny;
  }

  async disconnect(instanceId: string, options: DisconnectOptions): Promise<boolean> {
    const { tokens, removals } = this.#parts;
    // From here on no page of the instance can be asked for or written any more.
    if (!(await tokens.disconnect(instanceId, options))) return false;
    // The workers finish it if this process ends.
    if (options.deleteData) await removals.finish(instanceId);
    return true;
  }

  #names(resource: string | undefined): string[] {
    return this.#parts.resources.map(({ name }) => name).filter((name) => (resource ?? name) === name);
  }

  async #lists(instanceId: string, resource: string | undefined): Promise<ListStatus[]> {
    const names = this.#names(resource);
    const lists = await this.#parts.runs.lists(instanceId);
    return lists.filter((list) => names.includes(list.resource));
  }

  async #deliver(lists: readonly ListStatus[]): Promise<void> {
    const keys: ListKey[] = lists.map(({ instance_id, resource }) => ({ instanceId: instance_id, resource }));
    await this.#parts.enqueueDeliveries(keys.map((key) => ({ ...key, consumer: HANDLER_CONSUMER })));
  }

  #now(): number {
    return (this.#parts.now ?? Date.now)();
  }
}
