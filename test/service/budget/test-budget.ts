import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';
import { openRedis } from '../../../src/runtime/private-redis.ts';
import { CountWatch } from '../../../src/service/budget/count-watch.ts';
import { type Permit, RateBudget } from '../../../src/service/budget/rate-budget.ts';
import type { RateHeaders } from '../../../src/service/rate-headers.ts';
import { readBudgetState, writeBudgetState } from '../../support/budget-state.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { testLogger } from '../../support/test-logger.ts';
import { frozenRedis } from './frozen-redis.ts';
import { ROUTE } from './rate.ts';

export { OTHER_ROUTE, RESET, ROUTE, rate } from './rate.ts';

/** Every Redis that the app may start by itself. */
export const EVERY_REDIS = [
  { what: 'what the PATH offers', searchPath: process.env.PATH },
  { what: 'the JavaScript one', searchPath: '' },
];

export const WINDOW_MS = 60_000;

/** How long both processes have been connected without a gap. */
const UP_FOR_MS = 10 * 24 * 60 * 60_000;

/** Two budgets on one Redis, as of two processes, in a time that passes when the test says so; it ends with the suite that called. */
export async function startTestBudget(searchPath: string | undefined) {
  const lease = await openRedis({ dir: tempDir(), logger: testLogger().logger, searchPath });
  const connections = [new Redis(lease.url), new Redis(lease.url)] as const;
  const [redis] = connections;
  let nowMs = Date.now() - UP_FOR_MS;
  let steadyMs = 0;
  const steadyNow = () => steadyMs;
  const [own, others] = [frozenRedis(connections[0], () => nowMs), frozenRedis(connections[1], () => nowMs)];
  // Nothing is kept for people where a test counts permits.
  const budget = new RateBudget(own, 0, undefined, 0, new CountWatch(own, steadyNow));
  const sibling = new RateBudget(others, 0, undefined, 0, new CountWatch(others, steadyNow));
  await Promise.all(connections.map((connection) => connection.ping()));
  pass(UP_FOR_MS);
  afterAll(async () => {
    for (const connection of connections) connection.disconnect();
    await lease.release();
  });

  /** A company that nothing is known of, or of which an answer has just told this. */
  async function newCompany(known?: RateHeaders): Promise<string> {
    const company = randomUUID();
    if (known !== undefined) await budget.observe(company, known);
    return company;
  }

  async function acquire(company: string, route = ROUTE, from = budget): Promise<Permit> {
    const admission = await from.acquire(company, route);
    if (admission.permit === undefined)
      throw new Error(`no permit: ${admission.why}, ${admission.waitMs} ms`);
    return admission.permit;
  }

  async function refusal(company: string, route = ROUTE, from = budget) {
    const admission = await from.acquire(company, route);
    if (admission.permit !== undefined) throw new Error('a permit was granted');
    return admission;
  }

  function pass(ms: number): void {
    nowMs += ms;
    steadyMs += ms;
  }

  /** Sets Redis' clock. */
  function step(ms: number): void {
    nowMs += ms;
  }

  /** Takes permits until none is left. */
  async function takeAll(company: string): Promise<Permit[]> {
    const permits: Permit[] = [];
    for (;;) {
      const { permit } = await budget.acquire(company, ROUTE);
      if (permit === undefined) return permits;
      permits.push(permit);
    }
  }

  /** Lets the leases of permits run out, as when their holders were killed long ago. */
  async function expire(...permits: Permit[]): Promise<void> {
    for (const { company, id } of permits) {
      const state = await stateOf(company);
      await writeBudgetState(redis, company, { ...state, flight: { ...state.flight, [id]: 1 } });
    }
  }

  const stateOf = (company: string) => readBudgetState(redis, company);

  /** The permits that a company holds, by name. */
  async function flightOf(company: string): Promise<string[]> {
    return Object.keys((await stateOf(company)).flight).sort();
  }

  return {
    redis,
    /** By which further budgets are told the same time. */
    frozen: own,
    steadyNow,
    budget,
    sibling,
    newCompany,
    acquire,
    refusal,
    now: () => nowMs,
    pass,
    step,
    takeAll,
    expire,
    stateOf,
    flightOf,
  };
}
