import { randomUUID } from 'node:crypto';
import { InstallError, type Installer, type InstallFailure } from '../../src/install/install-types.ts';
import type { RecordReader, StoredRecord } from '../../src/store/record-types.ts';
import type { InstanceControl, InstanceStatus } from '../../src/sync/status-types.ts';
import { instanceStatus } from './status-fixtures.ts';

/** Where the stand-in for the service asks for consent. */
export const AUTHORIZE_URL = 'https://auth.example/oauth/authorize';

/**
 * What lies behind the web app, in memory, so that its pages can be brought into any state. The way through the
 * real parts is tested with those.
 */
export class FakeDomain {
  readonly instances = new Map<string, InstanceStatus>();
  readonly records = new Map<string, StoredRecord[]>();
  /** What the web app asked for, in order. */
  readonly calls: string[] = [];
  /** Which failure the next installs end with. */
  failure: InstallFailure | undefined;
  /** Awaited in the middle of an install, so that two can meet. */
  exchange: () => Promise<void> = async () => {};
  /** What a search answers instead. */
  refusedSearch: Error | undefined;
  /** What else the browsing of records answers. */
  counts = { hasMore: false, pending: 0, isShortened: false, isCoarse: false };
  #states = 0;
  readonly #generations = new Map<string, number>();

  readonly installer: Installer = {
    start: (session) => {
      this.#states += 1;
      const state = `state-${this.#states}-${randomUUID()}`;
      session.pendingInstalls = [...(session.pendingInstalls ?? []), { state, createdAt: 0 }];
      return new URL(`${AUTHORIZE_URL}?state=${state}`);
    },
    finish: async (session, query) => {
      const state = query.get('state');
      const known = session.pendingInstalls ?? [];
      if (!known.some((pending) => pending.state === state)) {
        throw new InstallError('state', 'This browser did not start the install.');
      }
      session.pendingInstalls = known.filter((pending) => pending.state !== state);
      this.calls.push(`exchange ${query.get('code')}`);
      await this.exchange();
      if (this.failure) throw new InstallError(this.failure, `It failed: ${this.failure} <b>`);
      const id = query.get('code') ?? '';
      if (!this.instances.has(id)) this.instances.set(id, instanceStatus({ id }));
      return id;
    },
  };

  readonly control: InstanceControl = {
    status: async (id) => this.instances.get(id),
    setAside: async (id) => {
      const resources = Object.entries(this.instances.get(id)?.resources ?? {});
      return Object.fromEntries(resources.map(([name, { set_aside }]) => [name, set_aside]));
    },
    syncNow: async (id, generation) => this.#act('sync', id, {}, generation),
    retryParked: async (id, generation) => this.#act('retry', id, {}, generation),
    pause: async (id, generation) => this.#act('pause', id, { status: 'paused' }, generation),
    resume: async (id, generation) => this.#act('resume', id, { status: 'active' }, generation),
    accessGeneration: async (id) => this.#generations.get(id) ?? 1,
    endAccess: async (id, from) => {
      if (from !== (this.#generations.get(id) ?? 1)) return undefined;
      this.calls.push(`end access ${id}`);
      return this.#nextGeneration(id);
    },
    disconnect: async (id, { deleteData, from, onEnded }) => {
      const call = deleteData ? 'disconnect and delete' : 'disconnect';
      if (!this.#act(call, id, { status: 'disconnected' }, from)) return false;
      await onEnded?.(this.#nextGeneration(id));
      return true;
    },
  };

  readonly reader: RecordReader = {
    browse: async (id, resource, { search, offset, limit }) => {
      if (search && this.refusedSearch) throw this.refusedSearch;
      const found = this.#of(id, resource).filter(({ document }) => document.includes(search ?? ''));
      const records = found.slice(offset, offset + limit);
      return { records, total: found.length, ...this.counts };
    },
    find: async (id, resource, recordId) => this.#of(id, resource).find((record) => record.id === recordId),
    stream: (id, resource) => this.stream(id, resource),
  };

  async *stream(id: string, resource: string): AsyncGenerator<string> {
    for (const { document } of this.#of(id, resource)) yield document;
  }

  #of(id: string, resource: string): StoredRecord[] {
    return this.records.get(`${id}/${resource}`) ?? [];
  }

  #nextGeneration(id: string): number {
    const next = (this.#generations.get(id) ?? 1) + 1;
    this.#generations.set(id, next);
    return next;
  }

  #act(call: string, id: string, change: Partial<InstanceStatus>, generation = 1): boolean {
    if (generation !== (this.#generations.get(id) ?? 1)) return false;
    this.calls.push(`${call} ${id}`);
    const status = this.instances.get(id);
    if (status) this.instances.set(id, { ...status, ...change });
    return true;
  }
}
