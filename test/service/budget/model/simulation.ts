import { PARTNER_LIMIT } from '../../../../src/contract/limits.ts';
import { LATEST_MS, LateSettlements } from '../../../../src/service/budget/late-settlements.ts';
import type { Admission, Permit, Settlement } from '../../../../src/service/budget/rate-budget.ts';
import { readRateHeaders } from '../../../../src/service/rate-headers.ts';
import { retryAfterMs } from '../../../../src/service/retry-timing.ts';
import { EventQueue } from './event-queue.ts';
import { modelBudget } from './model-budget.ts';
import { randomFrom } from './random.ts';
import type { Happening, Scenario } from './scenario.ts';
import { type Outcome, ServiceModel } from './service-model.ts';

const COMPANY = 'company';
const START_MS = Date.UTC(2031, 0, 1);
/** The holder of a request gives up on it after so long; the lease of its permit is longer. */
const TIMEOUT_MS = 20_000;
const LEASE_MS = 25_000;
/** How long the sync leaves permits to people before a window's end: not idleness. */
const KEPT = 2;

/** One request as it went. */
export interface Sent {
  route: string;
  grantedAt: number;
  countedAt?: number;
  outcome?: Outcome;
}

/** What a run of the model shows. */
export interface Observed {
  sent: Sent[];
  /** Requests of the other consumer that were counted. */
  others: number;
  /** The longest time that nothing was under way although the service would have counted a request and one was wanted. */
  longestIdleMs: number;
  /** Events of the run. */
  steps: number;
}

/** Whether the budget keeps it back; in the model's time, where timers of Node do not ring. */
function mayBeLate(permit: Permit, settlement: Settlement): boolean {
  const late = new LateSettlements(() => undefined);
  const isKept = late.keep(permit, settlement);
  late.take(permit.company, permit.route);
  return isKept;
}

/** Runs workers against the model of the service through the real budget, in a time of its own. */
export async function simulate(scenario: Scenario): Promise<Observed> {
  const random = randomFrom(scenario.seed);
  const queue = new EventQueue();
  const service = new ServiceModel({ ...scenario.service });
  const { redis, budget } = modelBudget(START_MS, KEPT);
  const observed: Observed = { sent: [], others: 0, longestIdleMs: 0, steps: 0 };
  let redisAheadMs = 0;
  let underWay = 0;
  let busySince = 0;
  /** Workers that died and are not back yet, or do something else: they want nothing. */
  let away = 0;
  /**
   * Requests that the budget must take for spent although the service may not have counted them, or for spent twice,
   * as a later answer counts them and their own has not been told yet: until when.
   */
  const unsure: number[] = [];

  const setRedisClock = () => {
    redis.nowUs = Math.round((START_MS + queue.now + redisAheadMs) * 1_000);
  };
  const truth = () => START_MS + queue.now;
  const between = ([low, high]: readonly [number, number]) => low + random() * (high - low);

  /** Looks, as often as it can matter, whether somebody is idle who need not be. */
  function watch(): void {
    const doubtful = unsure.filter((until) => until > queue.now).length;
    const allowed = service.allowed(truth(), PARTNER_LIMIT) - doubtful - KEPT;
    const guardOpen = scenario.routes.every((route) => service.guardAllows(truth(), route));
    if (underWay > 0 || away === scenario.workers || allowed <= 0 || !guardOpen) busySince = queue.now;
    observed.longestIdleMs = Math.max(observed.longestIdleMs, queue.now - busySince);
  }

  function settlementOf(headers: Parameters<typeof readRateHeaders>[0], outcome: Outcome): Settlement {
    const rate = readRateHeaders(headers, truth());
    const forMs = retryAfterMs(headers['retry-after'], truth());
    const block =
      forMs === undefined ? undefined : ({ forMs, of: outcome === 'guard' ? 'bucket' : 'company' } as const);
    return { answer: { rate }, ...(block && { block }) };
  }

  async function settle(worker: number, permit: Permit, settlement: Settlement): Promise<void> {
    underWay--;
    setRedisClock();
    if (random() < scenario.chances.late && mayBeLate(permit, settlement)) {
      away++;
      const lateByMs = Math.floor(random() * LATEST_MS);
      unsure.push(queue.now + lateByMs);
      queue.add(lateByMs, async () => {
        away--;
        setRedisClock();
        proceed(worker, await budget.exchange(permit, { ...settlement, lateByMs }));
      });
    } else if (random() < 0.5) {
      proceed(worker, await budget.exchange(permit, settlement));
    } else {
      await budget.settle(permit, settlement);
      queue.add(random() * 2, () => ask(worker));
    }
  }

  function doubt(): void {
    unsure.push(queue.now + LEASE_MS + scenario.service.windowMs);
  }

  function send(worker: number, permit: Permit): void {
    underWay++;
    const sent: Sent = { route: permit.route, grantedAt: queue.now };
    observed.sent.push(sent);
    const fate = random();
    const there = between(scenario.latencyMs) / 2;
    const back = between(scenario.latencyMs) / 2;
    const { unsent, dropped, unanswered, crashed } = scenario.chances;
    if (fate < unsent) {
      queue.add(there, () => settle(worker, permit, { unsent: true }));
      return;
    }
    const isDropped = fate < unsent + dropped;
    const isUnanswered = !isDropped && fate < unsent + dropped + unanswered;
    const isCrashed = !isDropped && !isUnanswered && fate < unsent + dropped + unanswered + crashed;
    let settlement: Settlement = {};
    if (!isDropped) {
      queue.add(there, () => {
        const { outcome, headers } = service.request(truth(), permit.route);
        sent.countedAt = queue.now;
        sent.outcome = outcome;
        settlement = settlementOf(headers, outcome);
      });
    }
    if (isCrashed) {
      doubt();
      queue.add(there + back, () => {
        underWay--;
        away++;
        queue.add(random() * 3_000, () => {
          away--;
          return ask(worker);
        });
      });
    } else if (isDropped || isUnanswered) {
      doubt();
      queue.add(Math.min(TIMEOUT_MS, there + back), () => settle(worker, permit, {}));
    } else {
      queue.add(there + back, () => settle(worker, permit, settlement));
    }
  }

  function proceed(worker: number, admission: Admission): void {
    watch();
    if (admission.permit !== undefined) send(worker, admission.permit);
    // A timer rings up to a few milliseconds late, never early.
    else queue.add(admission.waitMs + random() * 2, () => ask(worker));
  }

  async function ask(worker: number): Promise<void> {
    setRedisClock();
    const route = scenario.routes[worker % scenario.routes.length] ?? '/contacts';
    proceed(worker, await budget.acquire(COMPANY, route));
  }

  function happen(happening: Happening): void {
    if (happening.kind === 'limit') service.facts.limit = happening.limit;
    else if (happening.kind === 'redis clock') redisAheadMs += happening.byMs;
    else service.facts.aheadMs += happening.byMs;
  }

  function consume(): void {
    if (service.request(truth(), 'another').outcome === 'counted') observed.others++;
    queue.add(between([0, 2 * scenario.othersEveryMs]), consume);
  }

  for (let worker = 0; worker < scenario.workers; worker++) queue.add(random() * 50, () => ask(worker));
  for (const happening of scenario.happenings) queue.add(happening.atMs, () => happen(happening));
  if (scenario.othersEveryMs > 0) queue.add(between([0, scenario.othersEveryMs]), consume);
  const look = () => {
    watch();
    queue.add(20, look);
  };
  queue.add(0, look);
  await queue.run(scenario.runMs);
  observed.steps = queue.steps;
  return observed;
}
