import type { InstanceStore } from '../store/instances.ts';
import type { ParkedStore } from '../store/parked-batches.ts';
import type { RecordStore } from '../store/records.ts';
import type { StartOptions } from '../store/run-start.ts';
import type { RunKey, RunStore } from '../store/runs.ts';
import type { TokenStore } from '../store/tokens.ts';
import type { Resource } from './resources.ts';
import type { StatusReader } from './status.ts';
import type { DisconnectOptions, InstanceControl, InstanceStatus } from './status-types.ts';

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

  /** Starts what is not under way; what waits to be tried again is tried at once, and what is stuck begins anew. */
  async syncNow(instanceId: string): Promise<void> {
    const instance = await this.#parts.instances.find(instanceId);
    if (instance?.status !== 'active') return;
    const keys = this.#parts.resources.map(({ name }) => ({ instanceId, resource: name }));
    await this.#start(keys, { leavesStuck: true });
  }

  /** Sees to it that every parked batch is tried soon: by the run under way before its next pages, or by a new one. */
  async retryParked(instanceId: string): Promise<void> {
    const instance = await this.#parts.instances.find(instanceId);
    if (instance?.status !== 'active') return;
    const parked = await this.#parts.parked.makeDue(instanceId);
    const known = this.#parts.resources.filter(({ name }) => parked.includes(name));
    await this.#start(known.map(({ name }) => ({ instanceId, resource: name })));
  }

  /** Stops after the request that is under way; progress stays. */
  async pause(instanceId: string): Promise<void> {
    await this.#parts.instances.setStatus(instanceId, 'paused', { from: ['active'] });
  }

  /** Goes on where it stopped; what was finished comes round again in its time. */
  async resume(instanceId: string): Promise<void> {
    if (!(await this.#parts.instances.setStatus(instanceId, 'active', { from: ['paused'] }))) return;
    await this.#parts.runs.countAnew(instanceId, (this.#parts.now ?? Date.now)());
    const unfinished = (await this.#parts.runs.list(instanceId)).filter(
      ({ state }) => state !== 'idle' && state !== 'failed',
    );
    await this.#parts.enqueue(unfinished.map(({ resource }) => ({ instanceId, resource })));
  }

  async #start(keys: readonly RunKey[], options: StartOptions = {}): Promise<void> {
    const now = (this.#parts.now ?? Date.now)();
    for (const key of keys) await this.#parts.runs.start(key, now, options);
    await this.#parts.enqueue(keys);
  }

  accessGeneration(instanceId: string): Promise<number | undefined> {
    return this.#parts.instances.accessGeneration(instanceId);
  }

  endAccess(instanceId: string, from: number): Promise<number | undefined> {
    return this.#parts.instances.endAccess(instanceId, from);
  }

  async disconnect(instanceId: string, { deleteData, onEnded }: DisconnectOptions): Promise<void> {
    const { tokens, records } = this.#parts;
    // From here on no page of the instance can be asked for or written any more.
    const accessGeneration = await tokens.disconnect(instanceId, { deleteData });
    await onEnded?.(accessGeneration);
    // The workers finish it if this process ends; what a new install copies begins when it is through.
    if (deleteData) await records.finishRemoval(instanceId);
  }
}
