import { randomUUID } from 'node:crypto';
import type { Redis } from 'ioredis';
import { PARTNER_LIMIT } from '../../../../src/contract/limits.ts';
import { type Admission, type Outcome, type Permit, RateBudget } from '../../../../src/service/budget.ts';
import { readRateHeaders, retryAfterMs } from '../../../../src/service/headers.ts';
import { frozenRedis } from '../frozen-redis.ts';
import type { Scenario } from './scenario.ts';
import { ServiceModel, type Verdict } from './service-model.ts';

const START_MS = Date.UTC(2031, 0, 1);
/** The timeout of a request, and the lease of its permit. */
const TIMEOUT_MS = 20_000;
const LEASE_MS = 25_000;
/** Permits for people. To leave them is not idle time. */
const RESERVED = 2;

/** What a run shows. */
export interface Observed {
  /** Verdicts on our requests. */
  verdicts: Record<Verdict, number>;
  /** The longest time without a request in flight, while a worker wanted one and the service would have counted it. */
  longestIdleMs: number;
  /** Events of the run. */
  steps: number;
}

/** Runs workers of two processes, with the real budget, against the model of the service, in simulated time. */
export async function simulate(redis: Redis, scenario: Scenario): Promise<Observed> {
  const random = randomFrom(scenario.seed);
  const queue = new EventQueue();
  const service = new ServiceModel({ ...scenario.service });
  const company = randomUUID();
  const frozen = frozenRedis(redis, () => truth());
  const budget = new RateBudget(frozen, { reservedForPeople: RESERVED });
  const sibling = new RateBudget(frozen, { reservedForPeople: RESERVED });
  const budgetOf = (worker: number) => (worker % 3 === 0 ? sibling : budget);
  const observed: Observed = { verdicts: { counted: 0, limit: 0, guard: 0 }, longestIdleMs: 0, steps: 0 };
  let underWay = 0;
  let busySince = 0;
  /** Workers that died and have not started again. */
  let away = 0;
  /** For requests that the service may not have counted: until when the budget counts them. */
  const unsure: number[] = [];

  const truth = () => START_MS + queue.now;
  const between = ([low, high]: readonly [number, number]) => low + random() * (high - low);

  /** Measures idle time. */
  function watch(): void {
    const doubtful = unsure.filter((until) => until > queue.now).length;
    const allowed = service.allowed(truth(), PARTNER_LIMIT) - doubtful - RESERVED;
    const guardOpen = scenario.routes.every((route) => service.guardAllows(truth(), route));
    if (underWay > 0 || away === scenario.workers || allowed <= 0 || !guardOpen) busySince = queue.now;
    observed.longestIdleMs = Math.max(observed.longestIdleMs, queue.now - busySince);
  }

  function receive(route: string): Outcome {
    const { verdict, headers } = service.request(truth(), route);
    observed.verdicts[verdict]++;
    const forMs = retryAfterMs(headers, truth());
    return {
      answered: true,
      rate: readRateHeaders(headers, truth()),
      ...(forMs === undefined
        ? {}
        : { block: { forMs, of: verdict === 'guard' ? ('bucket' as const) : 'company' } }),
    };
  }

  async function finish(worker: number, permit: Permit, outcome: Outcome): Promise<void> {
    underWay--;
    if (random() < 0.5) proceed(worker, await budgetOf(worker).exchange(permit, outcome));
    else {
      await budgetOf(worker).release(permit, outcome);
      queue.add(random() * 2, () => ask(worker));
    }
  }

  function send(worker: number, permit: Permit): void {
    underWay++;
    const fate = random();
    const there = between(scenario.latencyMs) / 2;
    const back = between(scenario.latencyMs) / 2;
    const { unsent, dropped, unanswered, killed } = scenario.chances;
    if (fate < unsent) {
      queue.add(there, () => finish(worker, permit, { unsent: true }));
      return;
    }
    const isDropped = fate < unsent + dropped;
    let outcome: Outcome = {};
    if (!isDropped) {
      queue.add(there, () => {
        outcome = receive(permit.route);
      });
    }
    if (fate >= unsent + dropped + unanswered + killed) {
      queue.add(there + back, () => finish(worker, permit, outcome));
      return;
    }
    unsure.push(queue.now + LEASE_MS + scenario.service.windowMs);
    if (fate < unsent + dropped + unanswered) {
      queue.add(Math.min(TIMEOUT_MS, there + back), () => finish(worker, permit, {}));
      return;
    }
    queue.add(there + back, () => {
      underWay--;
      away++;
      queue.add(random() * 3_000, () => {
        away--;
        return ask(worker);
      });
    });
  }

  function proceed(worker: number, admission: Admission): void {
    watch();
    if (admission.permit !== undefined) send(worker, admission.permit);
    // A timer is a few milliseconds late, never early.
    else queue.add(admission.waitMs + random() * 2, () => ask(worker));
  }

  async function ask(worker: number): Promise<void> {
    const route = scenario.routes[worker % scenario.routes.length] ?? '/contacts';
    proceed(worker, await budgetOf(worker).acquire(company, route));
  }

  function consume(): void {
    service.request(truth(), 'another');
    queue.add(between([0, 2 * scenario.othersEveryMs]), consume);
  }

  function look(): void {
    watch();
    queue.add(20, look);
  }

  for (let worker = 0; worker < scenario.workers; worker++) queue.add(random() * 50, () => ask(worker));
  for (const { atMs, limit } of scenario.changes) {
    queue.add(atMs, () => {
      service.facts.limit = limit;
    });
  }
  if (scenario.othersEveryMs > 0) queue.add(between([0, scenario.othersEveryMs]), consume);
  queue.add(0, look);
  await queue.run(scenario.runMs);
  observed.steps = queue.steps;
  return observed;
}

/** Numbers from 0 up to 1 that a seed determines. */
function randomFrom(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Events in simulated time: nothing really waits. */
class EventQueue {
  /** Milliseconds since the start. */
  now = 0;
  steps = 0;
  /** The next event is the last item. */
  readonly #events: { at: number; run: () => void | Promise<void> }[] = [];

  add(inMs: number, run: () => void | Promise<void>): void {
    this.steps++;
    const at = this.now + Math.max(0, inMs);
    const place = this.#events.findLastIndex((event) => event.at > at) + 1;
    this.#events.splice(place, 0, { at, run });
  }

  async run(untilMs: number): Promise<void> {
    for (
      let event = this.#events.pop();
      event !== undefined && event.at <= untilMs;
      event = this.#events.pop()
    ) {
      this.now = event.at;
      await event.run();
    }
  }
}
