import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { AnswerMemory } from '../../src/client/answer-memory.ts';
import { HttpClient } from '../../src/client/http.ts';
import { AllowedOrigins } from '../../src/client/next-address.ts';
import { ServiceApi } from '../../src/client/service-api.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { Transport } from '../../src/client/transport.ts';
import type { RunKey } from '../../src/store/runs.ts';
import { PageGate } from '../../src/sync/page-gate.ts';
import { RESOURCES } from '../../src/sync/resources.ts';
import { runSlice } from '../../src/sync/run-slice.ts';
import type { SliceContext, SyncParts } from '../../src/sync/slice-parts.ts';
import { SlotWaits } from '../../src/sync/slot-waits.ts';
import { WriteTurns } from '../../src/sync/write-turns.ts';
import { StandingStill } from '../client/budget/standing-still.ts';
import { startSandbox } from '../sandbox/test-sandbox.ts';
import { NOW, openTestStore } from '../store/test-store.ts';
import { readBudgetState } from '../support/budget-state.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

const PAGES = 4;

const store = await openTestStore();
const redis = new Redis((await startTestRedis()).url);
const http = new HttpClient();
afterAll(async () => {
  redis.disconnect();
  await http.close();
});

/** How many places of a gate are free; takes them. */
function places(gate: PageGate): number {
  let free = 0;
  while (gate.tryEnter()) free++;
  return free;
}

/**
 * A slice that reads the contacts of a company, {@link PAGES} pages of them, with this budget.
 *
 * @param options.fault what comes of a page, by its address
 * @param options.faultAt of which one, from 1
 * @param options.endsAfter how many pages a token is good for by its time
 * @param options.begin is told of the run before its first page is asked for
 */
async function readContacts(
  budget: StandingStill,
  {
    fault,
    faultAt = 2,
    begin,
    endsAfter = PAGES,
  }: {
    fault?: (address: string) => object;
    faultAt?: number;
    begin?: (key: RunKey) => void;
    endsAfter?: number;
  } = {},
) {
  const sandbox = await startSandbox();
  const company = await sandbox.company({ contacts: PAGES * 100 });
  const { apiUrl } = sandbox.sandbox;
  const clock = new ServiceClock();
  const transport = new Transport({ http, clock, budget });
  const origins = new AllowedOrigins(apiUrl);
  let asked = 0;
  const api = new (class extends ServiceApi {
    override async listPage(...about: Parameters<ServiceApi['listPage']>) {
      const ordered = ++asked === faultAt ? fault?.(about[0].url.href) : undefined;
      if (ordered !== undefined)
        await sandbox.done('faults', { match: { path: '/contacts' }, fault: ordered, times: 1 });
      return super.listPage(...about);
    }
  })({ apiUrl, transport, clock, budget, origins, givesSecretAway: () => false });
  const tokens = {
    accessToken: async () => {
      const { access_token: text } = await sandbox.install(company);
      const from = asked;
      return { text, isDue: () => asked - from >= endsAfter };
    },
  };
  const parts = { ...store, api, tokens, resources: RESOURCES } as unknown as SyncParts;
  const turns = new WriteTurns();
  const gate = new PageGate(turns, new AnswerMemory());
  const { logger } = testLogger();
  const { signal } = new AbortController();
  const context: SliceContext = {
    logger,
    signal,
    hasRoom: () => true,
    gate,
    turns,
    waits: new SlotWaits(),
  };
  const key = { instanceId: await store.addInstance(), resource: 'contacts' };
  await store.runs.start(key, NOW);
  begin?.(key);
  await runSlice(parts, key, context);
  const journal = (await sandbox.journal()).filter(({ path }) => path === '/contacts');
  const instance = await store.instances.find(key.instanceId);
  const { flight } = await readBudgetState(redis, instance?.company_id ?? '');
  const statuses = journal.map(({ status }) => status);
  return { run: await store.runs.find(key), asked, statuses, flight, gate };
}

test('a permit that grew too old, whether asked for or brought by the page before, sends nothing: the page has another', async () => {
  const budget = new StandingStill(redis);
  budget.growsOld = (place) => place % 2 === 1;
  const { run, statuses, flight, gate } = await readContacts(budget);
  expect(run).toMatchObject({ state: 'idle', stored: PAGES * 100, error: null });
  expect(statuses).toEqual(Array(PAGES).fill(200));
  expect(budget.granted.size - budget.old.size).toBe(PAGES);
  expect(budget.old.size).toBeGreaterThanOrEqual(PAGES);
  expect(flight).toEqual({});
  expect(places(gate)).toBe(places(new PageGate(new WriteTurns(), new AnswerMemory())));
});

test('a token that ends in the middle of a slice is replaced before the next page is asked for', async () => {
  const fault = () => ({ revoke: 'access_token' });
  const { run, statuses } = await readContacts(new StandingStill(redis), { fault, endsAfter: 2 });
  expect(run).toMatchObject({ state: 'idle', stored: PAGES * 100, error: null });
  expect(statuses).toEqual(Array(PAGES).fill(200));
});

test.each([
  ['is refused', 1, { status: 500 }],
  ['is refused by the limit', 1, { status: 429, headers: { 'retry-after': '30' } }],
  ['was asked with a token that is rejected', PAGES, { status: 401 }],
  ['does not come', 1, { drop: 'after' }],
  ['is none', 1, { body: 'not JSON' }],
])(
  'a slice whose second page %s leaves no place in the gate taken, nor free twice',
  async (_what, pages, fault) => {
    const { run, statuses, flight, gate } = await readContacts(new StandingStill(redis), {
      fault: () => fault,
    });
    expect(run).toMatchObject({ pages });
    expect(statuses.length).toBeGreaterThan(1);
    expect(flight).toEqual({});
    expect(places(gate)).toBe(places(new PageGate(new WriteTurns(), new AnswerMemory())));
  },
);

const LOSSES: [what: string, lose: (key: RunKey) => Promise<unknown>][] = [
  ['whose instance is disconnected', ({ instanceId }) => store.tokens.disconnect(instanceId)],
  [
    'whose instance is paused',
    ({ instanceId }) => store.instances.setStatus(instanceId, 'paused', { from: ['active'] }),
  ],
  ['which another worker takes over', (key) => store.runs.claim(key)],
];

test.each(
  LOSSES.flatMap(([what, lose]) => [
    [what, 'was asked for', 0, lose] as const,
    [what, 'came with the page before', 1, lose] as const,
  ]),
)(
  'a run %s between a permit that %s and its request sends nothing more',
  async (_what, _from, sent, lose) => {
    const budget = new StandingStill(redis);
    const begin = (key: RunKey) => {
      budget.meanwhile = async (place) => place === sent + 1 && lose(key);
    };
    const { run, asked, statuses, flight, gate } = await readContacts(budget, { begin });
    expect(asked).toBe(sent);
    expect(statuses).toEqual(Array(sent).fill(200));
    expect(run).toMatchObject({ pages: 0, records: 0, error: null });
    expect(budget.granted.size).toBe(sent + 1);
    expect(flight).toEqual({});
    expect(places(gate)).toBe(places(new PageGate(new WriteTurns(), new AnswerMemory())));
  },
);

test.each(LOSSES)(
  'a run %s between the two askings for a page that names itself sends nothing more',
  async (_what, lose) => {
    const budget = new StandingStill(redis);
    const begin = (key: RunKey) => {
      // The second one came with the first answer, for the page after it, and is given back.
      budget.meanwhile = async (place) => place === 3 && lose(key);
    };
    const fault = (address: string) => ({
      body: JSON.stringify({ _pagination: { next: address }, _results: [{ id: 'crd_1' }] }),
    });
    const { run, asked, statuses, flight, gate } = await readContacts(budget, { begin, fault, faultAt: 1 });
    expect(asked).toBe(1);
    expect(statuses).toEqual([200]);
    expect(budget.granted.size).toBe(3);
    expect(run).toMatchObject({ pages: 0, records: 0, error: null });
    expect(flight).toEqual({});
    expect(places(gate)).toBe(places(new PageGate(new WriteTurns(), new AnswerMemory())));
  },
);
