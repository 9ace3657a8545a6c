import { createServer } from 'node:http';
import { Redis } from 'ioredis';
import { afterAll, expect } from 'vitest';
import { HEADER } from '../../src/contract/headers.ts';
import { RateBudget } from '../../src/service/budget.ts';
import { ServiceClock } from '../../src/service/headers.ts';
import { HttpClient } from '../../src/service/http.ts';
import { AllowedOrigins } from '../../src/service/next-url.ts';
import { ServiceApi } from '../../src/service/service-api.ts';
import type { Database } from '../../src/store/database.ts';
import { openStores } from '../../src/store/stores.ts';
import type { CheckOutcome } from '../../src/sync/check.ts';
import { SyncControl } from '../../src/sync/control.ts';
import type { SyncParts } from '../../src/sync/parts.ts';
import type { Resource } from '../../src/sync/resource.ts';
import { runSlice } from '../../src/sync/run.ts';
import { frozenRedis } from '../service/budget/frozen-redis.ts';
import { NOW, type TestStore } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

/** The orders of lists: the newest activity first, the oldest record first, or by a name that may change. */
export const ORDERS = ['activity', 'creation', 'name'] as const;

/** A record of the service. */
export interface ListRecord {
  id: string;
  /** The list is in the order of these numbers. */
  place: number;
  /** Each document of the list has a greater one. */
  version: number;
  /** The version with which it came, or came back. */
  born: number;
}

/** What a request meets: no page, a page that says falsely that the list ends here, or an answer as given. */
type Fault = 'broken' | 'empty' | { status: number; body?: string };

/** A request for a page (its `after`, null for the first one) or for one record, by a worker. */
export interface ListRequest {
  worker: string;
  after: string | null;
  record: string | undefined;
}

/** A list of a service: pages by keyset tokens, and GET of one record. Requests have no limit. */
export class ListService {
  readonly records = new Map<string, ListRecord>();
  /** Every request, in order. */
  readonly requests: ListRequest[] = [];
  /** Called with every request, before its answer is made and before it is sent. */
  onRequest: (request: ListRequest) => Promise<Fault | undefined> | undefined = () => undefined;
  onAnswer: (request: ListRequest) => Promise<void> | undefined = () => undefined;
  /** Whether it says of every single record that there is none. */
  deniesRecords = false;
  readonly #order: (typeof ORDERS)[number];
  readonly #sizes: readonly number[];
  readonly #blanks: number;
  readonly #underWay = new Map<Promise<unknown>, string>();
  #count = 0;

  /**
   * @param options.sizes of pages, in turn
   * @param options.blanks empty pages before each page
   */
  constructor({ order = 'activity' as (typeof ORDERS)[number], sizes = [3], blanks = 0 } = {}) {
    this.#order = order;
    this.#sizes = sizes;
    this.#blanks = blanks;
  }

  /** Adds a record, or brings one back. @param name its place in a list by name, from 0 */
  add(id: string, name = 0): void {
    const version = ++this.#count;
    this.records.set(id, { id, version, born: version, place: this.#place(name) });
  }

  /** Gives a record a new document. */
  change(record: ListRecord): void {
    record.version = ++this.#count;
    if (this.#order === 'activity') this.move(record);
  }

  /** Moves a record, to the front of a list by activity, without a change of its document. */
  move(record: ListRecord, name = 0): void {
    record.place = this.#place(name);
  }

  document({ id, version }: ListRecord): string {
    return `{"id":"${id}","version":${version}}`;
  }

  /** Resolves when no request of a worker is under way. */
  async idle(worker: string): Promise<void> {
    await Promise.allSettled([...this.#underWay].flatMap(([one, of]) => (of === worker ? [one] : [])));
  }

  answer(request: ListRequest): Promise<{ status: number; body: string }> {
    const answer = this.#answer(request);
    this.#underWay.set(answer, request.worker);
    return answer.finally(() => this.#underWay.delete(answer));
  }

  async #answer(request: ListRequest): Promise<{ status: number; body: string }> {
    this.requests.push(request);
    const fault = await this.onRequest(request);
    const { record, after } = request;
    const given = typeof fault === 'object' ? { body: '{}', ...fault } : undefined;
    const answer = given ?? (record === undefined ? this.#page(after, fault) : this.#record(record));
    await this.onAnswer(request);
    return answer;
  }

  #page(token: string | null, fault: Fault | undefined) {
    const [after = Number.NEGATIVE_INFINITY, blanks = 0] = token?.split('~').map(Number) ?? [];
    const rest = [...this.records.values()]
      .filter(({ place }) => place > after)
      .toSorted((a, b) => a.place - b.place);
    const isBlank = blanks < this.#blanks;
    const size = this.#sizes[this.requests.length % this.#sizes.length] ?? 1;
    const page = isBlank ? [] : rest.slice(0, size);
    const last = page.at(-1)?.place ?? after;
    const next = isBlank ? `${after}~${blanks + 1}` : rest.length > page.length ? `${last}~0` : null;
    if (fault === 'broken') return { status: 200, body: '{}' };
    if (fault === 'empty') return { status: 200, body: '{"_results":[],"_pagination":{"next":null}}' };
    const results = page.map((record) => this.document(record)).join();
    const address = next === null ? null : `http://${HOST}/${numbers.get(this)}/items?after=${next}`;
    return {
      status: 200,
      body: `{"_results":[${results}],"_pagination":{"next":${JSON.stringify(address)}}}`,
    };
  }

  #record(id: string) {
    const record = this.deniesRecords ? undefined : this.records.get(id);
    return record === undefined ? { status: 404, body: '{}' } : { status: 200, body: this.document(record) };
  }

  #place(name: number): number {
    const turn = ++this.#count;
    return this.#order === 'activity' ? -turn : this.#order === 'creation' ? turn : name + turn / 1e9;
  }
}

/** The services behind the one port of a test file, by their numbers. */
const services: ListService[] = [];
const numbers = new Map<ListService, number>();

const server = createServer(async (request, response) => {
  const url = new URL(request.url ?? '', 'http://x');
  const [, number, , record] = url.pathname.split('/');
  const worker = request.headers.authorization?.replace('Bearer ', '') ?? '';
  const asked = { worker, after: url.searchParams.get('after'), record };
  const answer = await services[Number(number)]?.answer(asked);
  // Each window ends before the next request.
  const now = Date.now();
  const limit = {
    date: new Date(now).toISOString(),
    ...{ [HEADER.limit]: 100, [HEADER.remaining]: 100, [HEADER.reset]: (now + 1) / 1_000 },
  };
  response.writeHead(answer?.status ?? 500, limit);
  response.end(answer?.body);
});
await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
const { port } = server.address() as { port: number };
const HOST = `127.0.0.1:${port}`;

const redis = new Redis((await startTestRedis()).url);
/** For the budget a second passes between two requests, so that no list waits for the limit. */
let budgetClock = Date.now();
const budget = new RateBudget(frozenRedis(redis, () => (budgetClock += 1_000)));
const http = new HttpClient();
afterAll(async () => {
  redis.disconnect();
  await http.close();
  server.close();
});

export const MINUTE_MS = 60_000;
export const HOUR_MS = 60 * MINUTE_MS;

/** The real parts of a worker's sync, for a list of this service. */
export function partsOf(
  service: ListService,
  db: Database,
  { worker = 'worker', ...given }: Partial<SyncParts> & { worker?: string } = {},
): SyncParts {
  if (!numbers.has(service)) numbers.set(service, services.push(service) - 1);
  const apiUrl = `http://${HOST}/${numbers.get(service)}`;
  const tokens = { accessToken: async () => ({ text: worker, isDue: () => false }) };
  return {
    ...openStores(db),
    tokens: tokens as unknown as SyncParts['tokens'],
    api: new ServiceApi({
      apiUrl,
      http,
      clock: new ServiceClock(),
      budget,
      origins: new AllowedOrigins(apiUrl),
    }),
    resources: [ITEMS],
    intervalMs: HOUR_MS,
    checkIntervalMs: MINUTE_MS,
    limitOf: async () => undefined,
    onChanges: () => {},
    ...given,
  };
}

export const ITEMS: Resource = { name: 'contacts', title: 'Contacts', route: '/items' };
export const ASKED_ITEMS: Resource = { ...ITEMS, record: '/items/:id' };

const { logger } = testLogger();

/** What people do with the lists of a store. */
export function controlOf(store: TestStore, now: () => number): SyncControl {
  const nothing = async () => {};
  const jobs = { enqueueLists: nothing, enqueueDeliveries: nothing };
  return new SyncControl({ ...store, ...jobs, resources: [ITEMS], intervalMs: HOUR_MS, now });
}

/** A list of so many records and one worker of it. */
export async function openList(
  store: TestStore,
  {
    records = 6,
    resource = ITEMS,
    db = store.db,
    ...options
  }: { records?: number; resource?: Resource; db?: Database } & ConstructorParameters<
    typeof ListService
  >[0] = {},
) {
  const service = new ListService(options);
  for (let n = 0; n < records; n++) service.add(`r${n}`, n);
  const key = { instanceId: await store.addInstance(), resource: resource.name };
  const clock = { now: NOW };
  let outcome: CheckOutcome | undefined;
  const parts = partsOf(service, db, {
    resources: [resource],
    now: () => clock.now,
    onCheck: (end) => {
      outcome = end.outcome;
    },
  });
  const list = () => store.list(key);
  const slice = async () => {
    service.requests.length = 0;
    const context = { logger, signal: new AbortController().signal, othersWait: () => false };
    return runSlice(parts, key, context);
  };
  let last = 0;
  return {
    ...{ service, key, clock, list, control: controlOf(store, () => clock.now) },
    /** Plays a full run, the open one if there is one. */
    async run() {
      await store.runs.start(key.instanceId, [key.resource], clock.now);
      const open = (await list()).run?.id ?? 0;
      await slice();
      return (await store.runs.find(open)) ?? expect.unreachable();
    },
    /** Plays a check after its interval. */
    async check() {
      clock.now += MINUTE_MS;
      outcome = undefined;
      await slice();
      return outcome;
    },
    /** The feed since the last call. */
    async feed() {
      const entries = await store.feed((await list()).id, last);
      last = entries.at(-1)?.seq ?? last;
      return entries.map(({ id, change }) => `${id} ${change}`);
    },
  };
}
