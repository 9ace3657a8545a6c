import { HANDLER_CONSUMER } from '../changes/handler-consumer.ts';
import type { Lagging } from '../store/changes.ts';
import type { ListStatus, OpenRun } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import type { DisconnectOptions } from '../store/tokens.ts';
import { checkInterval, type Resource } from './resource.ts';
import type { StatusReader } from './status.ts';
import type { InstanceStatus, ListProblems, RunJson } from './status-types.ts';
import type { AppWatch } from './watch-app.ts';

interface ControlParts
  extends Pick<Stores, 'instances' | 'tokens' | 'runs' | 'deletions' | 'changes' | 'removals' | 'erasure'> {
  resources: readonly Resource[];
  status: StatusReader;
  /** Starts the jobs of these runs now. */
  enqueueRuns: (runs: readonly OpenRun[]) => Promise<void>;
  /** Starts deliveries of these lists now. */
  enqueueDeliveries: (lists: readonly Lagging[]) => Promise<void>;
  /** Gets every disconnect, and whether it deleted the copy. */
  onDisconnect?: (instanceId: string, dataDeleted: boolean) => void;
  watch?: Pick<AppWatch, 'failing'>;
  now?: () => number;
}

/** The same actions and facts from any source, such as a test of the pages. */
export type InstanceControl = Pick<SyncControl, keyof SyncControl>;

/**
 * The actions of an administrator, or of an operator on the command line, and the facts on their pages. An action
 * without a resource concerns all lists of the instance. It answers false where the state does not allow it.
 */
export class SyncControl {
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

  /** Rejected records and dead letters, by the resource's name. */
  problems(instanceId: string): Promise<Record<string, ListProblems>> {
    return this.#parts.status.readProblems(instanceId);
  }

  /** The newest runs by the resource's name, the newest first. */
  runs(instanceId: string): Promise<Record<string, RunJson[]>> {
    return this.#parts.status.readRuns(instanceId);
  }

  /** Starts new runs, ends the wait for a retry, and replaces a stuck run by a new one. */
  async syncNow(instanceId: string, resource?: string): Promise<boolean> {
    const { runs, enqueueRuns } = this.#parts;
    const open = await runs.start(instanceId, this.#names(resource), this.#now(), { retries: true });
    if (open === undefined || open.length === 0) return false;
    await enqueueRuns(open);
    return true;
  }

  /** Stops the instance, or one list of it, before the next request. */
  async pause(instanceId: string, resource?: string): Promise<boolean> {
    const { instances, runs } = this.#parts;
    if (resource === undefined) return instances.setStatus(instanceId, 'paused', { from: ['active'] });
    return this.#knows(resource) && (await runs.pause({ instanceId, resource }, this.#now()));
  }

  /** Continues open runs. Finished lists start again at their time. The pause of a single list stays. */
  async resume(instanceId: string, resource?: string): Promise<boolean> {
    const { instances, runs, enqueueRuns } = this.#parts;
    const isResumed =
      resource === undefined
        ? await instances.setStatus(instanceId, 'active', { from: ['paused'] })
        : await runs.resume({ instanceId, resource });
    if (!isResumed) return false;
    const lists = await this.#lists(instanceId, resource);
    await enqueueRuns(
      lists.flatMap(({ resource, run, paused_at }) =>
        run === undefined || run.finished_at !== null || paused_at !== null
          ? []
          : [{ instanceId, resource, run: run.id, until: run.wait_until }],
      ),
    );
    await this.#deliver(lists);
    return true;
  }

  /**
   * @param minutes from the end of one run of the list to the start of the next; null for the default
   * @throws RangeError unless they are an interval
   */
  async setInterval(instanceId: string, resource: string, minutes: number | null): Promise<boolean> {
    if (minutes !== null) checkInterval(minutes);
    return this.#knows(resource) && this.#parts.runs.setInterval({ instanceId, resource }, minutes);
  }

  /**
   * Erases a record for good: its document and dead letters go, the handler gets `deleted`, the copy refuses its id.
   *
   * @param record id as the copy writes it: an integer as `#7`
   */
  async erase(instanceId: string, resource: string, record: string): Promise<boolean> {
    const { erasure } = this.#parts;
    const lists = await this.#lists(instanceId, resource);
    const [list] = lists;
    if (list === undefined || !(await erasure.erase(list.id, record, this.#now()))) return false;
    await this.#deliver(lists);
    // If this purge fails, the next one removes the rest of the record from the files.
    await erasure.purge().catch(() => undefined);
    return true;
  }

  /** Gives dead letters to the handler again. */
  async retry(instanceId: string, resource?: string): Promise<boolean> {
    const lists = await this.#lists(instanceId, resource);
    for (const { id } of lists) await this.#parts.changes.retry(id, HANDLER_CONSUMER);
    await this.#deliver(lists);
    return lists.length > 0;
  }

  /** Gives the copy, one list or one record to the handler again. */
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

  /** Marks the records as deleted that the last whole run held. */
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

  /** Deletes the tokens, stops everything, ends the access of other browsers, and with `deleteData` deletes the copy. */
  async disconnect(instanceId: string, options: DisconnectOptions): Promise<boolean> {
    const { tokens, removals, onDisconnect } = this.#parts;
    // From here on nobody requests or writes a page of this instance.
    if (!(await tokens.disconnect(instanceId, options))) return false;
    // If this process ends, the workers finish the removal.
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
    await this.#parts.enqueueDeliveries(
      lists.map(({ instance_id: instanceId, resource }) => ({
        instanceId,
        resource,
        consumer: HANDLER_CONSUMER,
      })),
    );
  }

  #now(): number {
    return (this.#parts.now ?? Date.now)();
  }
}
