import { randomUUID } from 'node:crypto';
import { Readable } from 'node:stream';
import type { Installs } from '../../src/auth/install.ts';
import { InstallError, type InstallErrorKind } from '../../src/auth/install-errors.ts';
import { BrowserStore, hashSecret } from '../../src/store/browsers.ts';
import type { Database } from '../../src/store/database.ts';
import { InstallStore } from '../../src/store/installs.ts';
import type { StoredRecord } from '../../src/store/records.ts';
import { checkInterval } from '../../src/sync/resource.ts';
import type { DayJson, InstanceStatus, RunJson } from '../../src/sync/status-types.ts';
import type { ChangeFeed, WebDependencies } from '../../src/web/web-dependencies.ts';
import { instanceStatus, NOW } from './status-fixtures.ts';

type Action = Awaited<ReturnType<WebDependencies['actions']['list']>>[number];
type StreamedRecord = { id: string; document: string; updatedAt: number };

/** Where the stand-in for the service asks for consent. */
export const AUTHORIZE_URL = 'https://auth.example/oauth/authorize';

/**
 * What lies behind the web app, so that its pages can be brought into any state: instances and their copy in memory,
 * browsers and installs in a real database. The way through the real parts is tested with those.
 */
export class FakeDomain {
  readonly instances = new Map<string, InstanceStatus>();
  readonly records = new Map<string, StoredRecord[]>();
  /** What the web app asked for, in order. */
  readonly calls: string[] = [];
  /** Which error the next installs end with. */
  failure: InstallErrorKind | undefined;
  /** What else the browsing of records answers. */
  counts = { hasMore: false, pending: 0, isShortened: false };
  readonly browsers: BrowserStore;
  /** Installs as the service would let them end: the code becomes the id of the instance. */
  readonly installs: Pick<Installs, 'begin' | 'finish'>;

  constructor(db: Database) {
    this.browsers = new BrowserStore(db);
    const store = new InstallStore(db);
    this.installs = {
      begin: async (browserId, returnTo) => {
        const [state, nonce] = [randomUUID(), randomUUID()];
        const hashes = { stateHash: hashSecret(state), nonceHash: hashSecret(nonce) };
        await store.begin({ ...hashes, returnTo }, browserId, Date.now());
        return { address: new URL(`${AUTHORIZE_URL}?state=${state}`), nonce };
      },
      finish: async ({ query, nonces, carriedSid, newSid }) => {
        const id = query.get('code') ?? '';
        this.calls.push(`exchange ${id}`);
        const stateHash = hashSecret(query.get('state') ?? '');
        const returnTo = (await store.find(stateHash))?.return_to ?? null;
        if (this.failure) {
          const failure = new InstallError(this.failure, `It failed: ${this.failure} <b>`);
          throw Object.assign(failure, { returnTo });
        }
        const proof = {
          nonceHashes: nonces.map(hashSecret),
          carriedSid: carriedSid === undefined ? undefined : hashSecret(carriedSid),
          newSid: hashSecret(newSid),
        };
        const moments = { access_expires_at: 0, refresh_issued_at: 0, refresh_due_at: 0, refreshed_at: 0 };
        const tokens = { access_token: 'encrypted', refresh_token: 'encrypted', ...moments };
        const instance = { id, company_id: id, name: id };
        const done = await store.complete(stateHash, instance, tokens, proof, Date.now(), []);
        if (!done.isSeen) {
          throw new InstallError('state', 'This browser did not start the install.');
        }
        if (!this.instances.has(id)) this.instances.set(id, instanceStatus({ id }));
        return { instanceId: id, isNew: true, returnTo };
      },
    };
  }

  /** Ids of records that can be erased; all, unless they are named. */
  known: Set<string> | undefined;
  /** The days and the runs of every instance. */
  dayRows: Record<string, DayJson[]> = {};
  runs: Record<string, RunJson[]> = {};
  readonly status: WebDependencies['status'] = {
    readRuns: async () => this.runs,
    readDays: async () => this.dayRows,
    read: async (id) => this.instances.get(id),
    readProblems: async (id) => {
      const resources = Object.entries(this.instances.get(id)?.resources ?? {});
      return Object.fromEntries(resources.map(([name, { problems }]) => [name, problems]));
    },
    readWrites: async (id) => this.instances.get(id)?.outbox.writes ?? [],
  };
  readonly control: WebDependencies['control'] = {
    setInterval: async (id, resource, minutes) => {
      if (minutes !== null) checkInterval(minutes);
      return this.#act('interval', [id, resource, String(minutes)]);
    },
    erase: async (...of) => (this.known === undefined || this.known.has(of[2])) && this.#act('erase', of),
    resolveWrite: async (...of) => this.#act('resolve', of),
    syncNow: async (...of) => this.#act('sync', of, this.#started(of[0])),
    retry: async (...of) => this.#act('retry', of),
    replay: async (...of) => this.#act('replay', of),
    confirmDeletions: async (...of) => this.#act('confirm', of),
    pause: async (...of) => this.#act('pause', of, of[1] === undefined ? { status: 'paused' } : {}),
    resume: async (...of) => this.#act('resume', of, of[1] === undefined ? { status: 'active' } : {}),
    disconnect: async (id, { deleteData }) =>
      this.#act(deleteData ? 'disconnect and delete' : 'disconnect', [id], { status: 'disconnected' }),
  };

  readonly reader: WebDependencies['records'] = {
    browse: async (id, resource, { search, offset, limit }) => {
      const found = this.#of(id, resource).filter(({ document }) => document?.includes(search ?? ''));
      const records = found.slice(offset, offset + limit);
      return { records, total: found.length, ...this.counts };
    },
    find: async (id, resource, recordId) => this.#of(id, resource).find((record) => record.id === recordId),
    stream: (id, resource, { search = '' } = {}) => this.stream(id, resource, search),
    freshness: async (id, resource) => {
      const { full_at, checked_at } = this.instances.get(id)?.resources[resource] ?? {};
      const ms = (at: string | null | undefined) => (at ? Date.parse(at) : null);
      return { fullAt: ms(full_at), checkedAt: ms(checked_at) };
    },
  };

  /** What was noted of actions, newest first. */
  readonly noted: Action[] = [];
  readonly pauses: Awaited<ReturnType<WebDependencies['actions']['pauses']>> = [];
  readonly actions: WebDependencies['actions'] = {
    pauses: async () => this.pauses,
    add: async (action) =>
      void this.noted.unshift({ id: this.noted.length, company: null, at: NOW, ...action }),
    list: async ({ limit }) => this.noted.slice(0, limit),
  };

  /** The change feed of every list. */
  readonly feed: string[] = [];
  readonly changes: ChangeFeed = {
    feed: (id, resource, range) => {
      this.calls.push(`feed ${id} ${resource} ${range.after} ${range.limit}`);
      return Readable.from(this.feed.slice(range.after, range.after + range.limit));
    },
  };

  async *stream(id: string, resource: string, search: string): AsyncGenerator<StreamedRecord> {
    for (const { id: recordId, document, updatedAt } of this.#of(id, resource)) {
      if (document?.includes(search)) yield { id: recordId, document, updatedAt };
    }
  }

  #started(id: string): Partial<InstanceStatus> {
    const lists = Object.entries(this.instances.get(id)?.resources ?? {});
    const started = lists.map(([name, list]) => [name, { ...list, state: 'waiting' as const }]);
    return { resources: Object.fromEntries(started) };
  }

  #of(id: string, resource: string): StoredRecord[] {
    return this.records.get(`${id}/${resource}`) ?? [];
  }

  /** @param of the instance, and what of it */
  #act(call: string, of: (string | undefined)[], change: Partial<InstanceStatus> = {}): boolean {
    this.calls.push([call, ...of].filter((part) => part !== undefined).join(' '));
    const [id = ''] = of;
    const status = this.instances.get(id);
    if (status) this.instances.set(id, { ...status, ...change });
    return true;
  }
}
