import { hashKey } from '../changes/collect-writes.ts';
import { HANDLER_CONSUMER, type Lagging } from '../store/changes.ts';
import type { ListJob, ListStatus } from '../store/runs.ts';
import type { Stores } from '../store/stores.ts';
import type { DisconnectOptions } from '../store/token-table.ts';
import { checkInterval, type Resource } from './resource.ts';
import { listIntervalMs } from './schedule.ts';

/** How long a page waits for the removal of a copy, in milliseconds. */
const REMOVAL_MS = 1_000;

interface ControlParts
  extends Pick<
    Stores,
    'instances' | 'tokens' | 'dueLists' | 'runs' | 'deletions' | 'changes' | 'removals' | 'erasure' | 'outbox'
  > {
  resources: readonly Resource[];
  /** The default pause between two full runs of a list, in milliseconds. */
  intervalMs: number;
  /** Starts the jobs of these lists now. */
  enqueueLists: (jobs: readonly ListJob[]) => Promise<void>;
  /** Starts deliveries of these lists now. */
  enqueueDeliveries: (lists: readonly Lagging[]) => Promise<void>;
  /** Gets every disconnect, whether it deleted the copy, and how many writes it discarded. */
  onDisconnect?: (instanceId: string, facts: { dataDeleted: boolean; writesDiscarded: number }) => void;
  now?: () => number;
}

/**
 * The actions of an administrator or an operator. An action without a resource concerns all lists of the instance. It
 * answers false where the state does not allow it.
 */
export class SyncControl {
  readonly #parts: ControlParts;

  constructor(parts: ControlParts) {
    this.#parts = parts;
  }

  /** Starts full runs, ends the wait for a retry, and replaces a stuck run by a new one. A check gives way. */
  async syncNow(instanceId: string, resource?: string): Promise<boolean> {
    const { runs, enqueueLists } = this.#parts;
    const open = await runs.start(instanceId, this.#names(resource), this.#now(), { retries: true });
    if (open === undefined || open.length === 0) return false;
    await enqueueLists(open);
    return true;
  }

  /** Stops the instance, or one list of it, before the next request. */
  async pause(instanceId: string, resource?: string): Promise<boolean> {
    const { instances, dueLists } = this.#parts;
    if (resource === undefined) return instances.setStatus(instanceId, 'paused', { from: ['active'] });
    return this.#names(resource).length > 0 && (await dueLists.pause({ instanceId, resource }, this.#now()));
  }

  /** Continues open runs. Finished lists start again at their time. The pause of a single list stays. */
  async resume(instanceId: string, resource?: string): Promise<boolean> {
    const { instances, dueLists, enqueueLists } = this.#parts;
    const isResumed =
      resource === undefined
        ? await instances.setStatus(instanceId, 'active', { from: ['paused'] })
        : await dueLists.resume({ instanceId, resource });
    if (!isResumed) return false;
    const lists = await this.#lists(instanceId, resource);
    await enqueueLists(
      lists.flatMap(({ id, resource, run, paused_at }) =>
        run === undefined || run.finished_at !== null || paused_at !== null
          ? []
          : [{ instanceId, resource, list: id, until: run.wait_until, pages: run.pages }],
      ),
    );
    await this.#deliver(lists);
    return true;
  }

  /**
   * @param minutes from the end of one full run of the list to the start of the next; null for the default
   * @throws RangeError unless they are an interval
   */
  async setInterval(instanceId: string, resource: string, minutes: number | null): Promise<boolean> {
    if (minutes !== null) checkInterval(minutes);
    const known = this.#parts.resources.find(({ name }) => name === resource);
    if (known === undefined) return false;
    const intervalMs = listIntervalMs({ interval_minutes: minutes }, known, this.#parts.intervalMs);
    return this.#parts.dueLists.setInterval({ instanceId, resource }, minutes, intervalMs);
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
    const route = this.#parts.resources.find(({ name }) => name === resource)?.route;
    if (list === undefined) return false;
    if ((await erasure.erase(list.id, record, this.#now(), route)) === undefined) return false;
    await this.#deliver(lists);
    return true;
  }

  /** Sends a write again that waits, was refused or is unknown; or ends it: an unknown one has then arrived. */
  async resolveWrite(instanceId: string, key: string, decision: 'retry' | 'discard'): Promise<boolean> {
    const resolved = await this.#parts.outbox.resolve(instanceId, hashKey(instanceId, key), decision);
    return resolved !== undefined && (resolved.to !== resolved.from || resolved.to === 'pending');
  }

  /** Gives dead letters to the handler again. */
  async retry(instanceId: string, resource?: string): Promise<boolean> {
    const lists = await this.#lists(instanceId, resource);
    for (const { id } of lists) await this.#parts.changes.retry(id, HANDLER_CONSUMER, this.#now());
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

  /** Marks the records as deleted whose deletion is held: no full run since the first that held has seen them. */
  async confirmDeletions(instanceId: string, resource?: string): Promise<boolean> {
    const { runs, deletions } = this.#parts;
    const lists = (await this.#lists(instanceId, resource)).filter(({ held_run }) => held_run !== null);
    for (const list of lists) {
      const marking = { beforeRun: list.held_run ?? 0, counter: list.full_run ?? 0 };
      for (let after: number | undefined = 0; after !== undefined; ) {
        const marked = await deletions.markPortion(list.id, marking, after, this.#now());
        after = marked === 'lost' ? undefined : marked.next;
      }
      await runs.releaseHeld(list);
    }
    await this.#deliver(lists);
    return lists.length > 0;
  }

  /** Deletes the tokens, stops everything, ends the access of other browsers, and with `deleteData` deletes the copy. */
  async disconnect(instanceId: string, options: DisconnectOptions): Promise<boolean> {
    const { tokens, removals, onDisconnect } = this.#parts;
    // From here on nobody requests or writes a page of this instance.
    const writesDiscarded = await tokens.disconnect(instanceId, options);
    if (writesDiscarded === undefined) return false;
    // The workers finish what takes longer.
    if (options.deleteData) await removals.finish(instanceId, AbortSignal.timeout(REMOVAL_MS));
    onDisconnect?.(instanceId, { dataDeleted: options.deleteData === true, writesDiscarded });
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
