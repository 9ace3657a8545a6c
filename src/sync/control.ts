import { HANDLER_CONSUMER } from '../changes/handler-consumer.ts';
import type { Lagging } from '../store/changes.ts';
import type { ListKey, ListStatus, OpenRun } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import type { DisconnectOptions } from '../store/tokens.ts';
import { checkInterval, type Resource } from './resource.ts';
import type { StatusReader } from './status.ts';
import type { InstanceControl, InstanceStatus, ListProblems, RunJson } from './status-types.ts';
import type { AppWatch } from './watch-app.ts';

/** What an administrator's buttons work with. */
interface ControlParts
  extends Pick<Stores, 'instances' | 'tokens' | 'runs' | 'deletions' | 'changes' | 'removals' | 'erasure'> {
  resources: readonly Resource[];
  status: StatusReader;
  /** Sees to it that these runs have a job, now. */
  enqueueRuns: (runs: readonly OpenRun[]) => Promise<void>;
  /** Sees to it that these lists have a delivery, now. */
  enqueueDeliveries: (lists: readonly Lagging[]) => Promise<void>;
  /** Told of every disconnect, and whether it has deleted the copy. */
  onDisconnect?: (instanceId: string, dataDeleted: boolean) => void;
  /** What keeps the whole app from copying; without it, nothing does. */
  watch?: Pick<AppWatch, 'failing'>;
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
    const failing = this.#parts.watch?.failing;
    if (status === undefined || failing === undefined) return status;
    return { ...status, error_kind: failing, error: null };
  }

  problems(instanceId: string): Promise<Record<string, ListProblems>> {
    return this.#parts.status.readProblems(instanceId);
  }

  runs(instanceId: string): Promise<Record<string, RunJson[]>> {
    return this.#parts.status.readRuns(instanceId);
  }

  /** Starts what is not under way; what waits to be tried again is tried at once, and what is stuck begins anew. */
  async syncNow(instanceId: string, resource?: string): Promise<boolean> {
    const open = await this.#parts.runs.start(instanceId, this.#names(resource), this.#now(), {
      retries: true,
    });
    if (open === undefined || open.length === 0) return false;
    await this.#parts.enqueueRuns(open);
    return true;
  }

  /** Stops before the next request; progress stays. */
  async pause(instanceId: string, resource?: string): Promise<boolean> {
    const { instances, runs } = this.#parts;
    if (resource === undefined) return instances.setStatus(instanceId, 'paused', { from: ['active'] });
    return this.#knows(resource) && (await runs.pause({ instanceId, resource }, this.#now()));
  }

  /** Goes on where it stopped; what was finished comes round again in its time. A list's own pause ends by its own. */
  async resume(instanceId: string, resource?: string): Promise<boolean> {
    const { instances, runs, enqueueRuns } = this.#parts;
    const isResumed =
      resource === undefined
        ? await instances.setStatus(instanceId, 'active', { from: ['paused'] })
        : await runs.resume({ instanceId, resource });
    if (!isResumed) return false;
    const lists = await this.#lists(instanceId, resource);
    await enqueueRuns(
      lists.flatMap((list) =>
        list.run === undefined || list.run.finished_at !== null || list.paused_at !== null
          ? []
          : [{ instanceId, resource: list.resource, run: list.run.id, until: list.run.wait_until }],
      ),
    );
    await this.#deliver(lists);
    return true;
  }

  /** @throws RangeError for what is no interval */
  async setInterval(instanceId: string, resource: string, minutes: number | null): Promise<boolean> {
    if (minutes !== null) checkInterval(minutes);
    return this.#knows(resource) && this.#parts.runs.setInterval({ instanceId, resource }, minutes);
  }

  /** @param record as the copy knows it: an integer as `#7` */
  async erase(instanceId: string, resource: string, record: string): Promise<boolean> {
    const { erasure } = this.#parts;
    const lists = await this.#lists(instanceId, resource);
    const [list] = lists;
    if (list === undefined || !(await erasure.erase(list.id, record, this.#now()))) return false;
    await this.#deliver(lists);
    // The record is erased: what is left of it in the files goes with the next purge, if this one fails.
    await erasure.purge().catch(() => undefined);
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
    const { tokens, removals, onDisconnect } = this.#parts;
    // From here on no page of the instance can be asked for or written any more.
    if (!(await tokens.disconnect(instanceId, options))) return false;
    // The workers finish it if this process ends.
    if (options.deleteData) await removals.finish(instanceId);
    onDisconnect?.(instanceId, options.deleteData === true);
    return true;
  }

  #names(resource: string | undefined): string[] {
    return this.#parts.resources.map(({ name }) => name).filter((name) => (resource ?? name) === name);
  }

  #knows(resource: string): boolean {
    return this.#names(resource).length > 0;
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
