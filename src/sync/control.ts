import type { DisconnectOptions } from '../store/disconnect.ts';
import type { InstanceStore } from '../store/instances.ts';
import type { ParkedStore } from '../store/parked-batches.ts';
import type { RecordStore } from '../store/records.ts';
import type { StartOptions } from '../store/run-start.ts';
import type { RunKey, RunStore } from '../store/runs.ts';
import type { TokenStore } from '../store/tokens.ts';
import type { Resource } from './resources.ts';
import type { StatusReader } from './status.ts';
import type { InstanceControl, InstanceStatus, SetAsideStatus } from './status-types.ts';

/** What an administrator's buttons work with. */
export interface ControlParts {
  instances: InstanceStore;
  tokens: TokenStore;
  runs: RunStore;
  records: RecordStore;
  parked: ParkedStore;
  resources: readonly Resource[];
  status: StatusReader;
  /** Sees to it that these runs have a job, now. */
  enqueue: (runs: readonly RunKey[]) => Promise<void>;
  /** What keeps the whole app from copying; without it, nothing does. */
  watch?: { readonly notice: string | undefined };
  now?: () => number;
}

/** What an administrator does to an instance. */
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

  setAside(instanceId: string): Promise<Record<string, SetAsideStatus>> {
    return this.#parts.status.readSetAside(instanceId);
  }

  /** Starts what is not under way; what waits to be tried again is tried at once, and what is stuck begins anew. */
  syncNow(instanceId: string): Promise<boolean> {
    const keys = this.#parts.resources.map(({ name }) => ({ instanceId, resource: name }));
    return this.#start(keys, { leavesStuck: true, whileActive: true });
  }

  /** Sees to it that every parked batch is tried soon: by the run under way before its next pages, or by a new one. */
  async retryParked(instanceId: string): Promise<boolean> {
    const instance = await this.#parts.instances.find(instanceId);
    if (instance?.status !== 'active') return false;
    const parked = await this.#parts.parked.makeDue(instanceId);
    const known = this.#parts.resources.filter(({ name }) => parked.includes(name));
    const keys = known.map(({ name }) => ({ instanceId, resource: name }));
    return this.#start(keys, { whileActive: true });
  }

  /** Stops after the request that is under way; progress stays. */
  pause(instanceId: string): Promise<boolean> {
    return this.#parts.instances.setStatus(instanceId, 'paused', { from: ['active'] });
  }

  /** Goes on where it stopped; what was finished comes round again in its time. */
  async resume(instanceId: string): Promise<boolean> {
    const { instances, runs } = this.#parts;
    if ((await instances.find(instanceId))?.status !== 'paused') return false;
    // First what is of no use by itself: where the database is in trouble in between, nothing is done.
    await runs.countAnew(instanceId, (this.#parts.now ?? Date.now)());
    if (!(await instances.setStatus(instanceId, 'active', { from: ['paused'] }))) return false;
    const unfinished = (await this.#parts.runs.list(instanceId)).filter(
      ({ state }) => state !== 'idle' && state !== 'failed',
    );
    await this.#parts.enqueue(unfinished.map(({ resource }) => ({ instanceId, resource })));
    return true;
  }

  async #start(keys: readonly RunKey[], options: StartOptions): Promise<boolean> {
    const now = (this.#parts.now ?? Date.now)();
    if ((await this.#parts.runs.startAll(keys, now, options)) === undefined) return false;
    await this.#parts.enqueue(keys);
    return true;
  }

  async disconnect(instanceId: string, options: DisconnectOptions): Promise<boolean> {
    const { tokens, records } = this.#parts;
    // From here on no page of the instance can be asked for or written any more.
    if (!(await tokens.disconnect(instanceId, options))) return false;
    // The workers finish it if this process ends; what a new install copies begins when it is through.
    if (options.deleteData) await records.finishRemoval(instanceId);
    return true;
  }
}
