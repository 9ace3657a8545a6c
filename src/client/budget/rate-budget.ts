import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { PARTNER_LIMIT, WINDOW_MS } from '../../contract/limits.ts';
import { REQUEST_TIMEOUT_MS } from '../http.ts';
import type { RateHeaders } from '../rate-headers.ts';

/** How long a permit counts as in flight when its holder never comes back, in milliseconds. */
const LEASE_MS = REQUEST_TIMEOUT_MS + 5_000;

/**
 * Permits of a window that the sync leaves to what a person waits for: an install asks whose token it is before
 * anything is known of the company, so without a permit. Near the window's end the sync takes them, too.
 */
const KEPT_FOR_PEOPLE = 2;

/** The right to send one request now. It must be settled, whatever becomes of the request. */
export interface Permit {
  id: string;
  company: string;
  /** The route that is called, with the specification's placeholders: what guards are kept by. */
  route: string;
}

/** What became of a request. */
export interface Settlement {
  /** There was an answer; with the limit's headers if it carried them. Absent: there was none. */
  answer?: { rate: RateHeaders | undefined };
  /** The service wants no requests for so many milliseconds: of the company, or of this route alone. */
  block?: { forMs: number; routeOnly: boolean };
}

/** A permit, or how long to wait for one and for what. */
export type Admission =
  | { permit: Permit }
  | { permit: undefined; waitMs: number; why: 'limit' | 'blocked' | 'probe' };

/** What the budget knows of a company, times in milliseconds since 1970 by Redis' clock. */
export interface BudgetState {
  limit: number | undefined;
  /** Requests left in the window that is under way; undefined when nothing is known about it. */
  remaining: number | undefined;
  resetAt: number | undefined;
  burstRemaining: number | undefined;
  blockedUntil: number | undefined;
}

const SCRIPT = readFileSync(new URL('./budget.lua', import.meta.url), 'utf8');

interface BudgetCommand {
  rateBudget(...args: (string | number)[]): Promise<[granted: number, waitMs: number, why: string]>;
}

/**
 * Decides when a request may go, for every process that shares the Redis: permits left are the smallest
 * `x-ratelimit-remaining` seen for the current window, less the requests in flight. So the limit holds whatever
 * the number of workers (Limits, "Other rate limits": 120 a minute per company).
 */
export class RateBudget {
  readonly #redis: Redis & BudgetCommand;
  readonly #keptForPeople: number;

  constructor(redis: Redis, keptForPeople = KEPT_FOR_PEOPLE) {
    this.#keptForPeople = keptForPeople;
    redis.defineCommand('rateBudget', { numberOfKeys: 3, lua: SCRIPT });
    this.#redis = redis as Redis & BudgetCommand;
  }

  /** Asks for the right to send one request on behalf of a company. */
  async acquire(company: string, route: string): Promise<Admission> {
    const permit = { id: randomUUID(), company, route };
    const [granted, waitMs, why] = await this.#run(company, NO_SETTLEMENT, permit);
    if (granted === 1) return { permit };
    return { permit: undefined, waitMs, why: why as 'limit' | 'blocked' | 'probe' };
  }

  /** Gives a permit back with what became of its request. */
  async settle(permit: Permit, settlement: Settlement): Promise<void> {
    await this.#run(permit.company, settlementArguments(permit, settlement));
  }

  /** Learns from an answer to a request that no permit was asked for: the one that told which company it is. */
  async observe(company: string, rate: RateHeaders): Promise<void> {
    await this.settle({ id: 'none', company, route: '' }, { answer: { rate } });
  }

  /** What is known now, for the dashboard. */
  async read(company: string): Promise<BudgetState> {
    const [state, [seconds, micros]] = await Promise.all([
      this.#redis.hgetall(stateKey(company)),
      this.#redis.time(),
    ]);
    const now = Number(seconds) * 1_000 + Number(micros) / 1_000;
    const field = (name: string) => (state[name] === undefined ? undefined : Number(state[name]));
    const end = field('end');
    const known = end !== undefined && end > now;
    const blocked = field('blocked');
    return {
      limit: field('limit'),
      remaining: known ? Math.max(0, field('remaining') ?? 0) : undefined,
      resetAt: known ? end : undefined,
      burstRemaining: field('burst'),
      blockedUntil: blocked !== undefined && blocked > now ? blocked : undefined,
    };
  }

  #run(company: string, settlement: (string | number)[], acquire?: Permit) {
    return this.#redis.rateBudget(
      stateKey(company),
      `${stateKey(company)}:flight`,
      `${stateKey(company)}:unheard`,
      ...settlement,
      acquire?.id ?? '',
      acquire?.route ?? '',
      LEASE_MS,
      WINDOW_MS,
      PARTNER_LIMIT,
      this.#keptForPeople,
    );
  }
}

const NO_SETTLEMENT = ['', '', '', '', '', '', '', 0, ''];

function settlementArguments(permit: Permit, { answer, block }: Settlement): (string | number)[] {
  const rate = answer?.rate;
  const outcome = answer === undefined ? 'lost' : rate === undefined ? 'bare' : 'answered';
  return [
    permit.id,
    outcome,
    rate?.limit ?? '',
    rate?.remaining ?? '',
    rate?.resetMs ?? '',
    rate?.endsInMs ?? '',
    rate?.burstRemaining ?? '',
    block?.forMs ?? 0,
    block?.routeOnly ? permit.route : '',
  ];
}

// The braces keep all keys of a company on one node of a Redis cluster.
function stateKey(company: string): string {
  return `budget:{${company}}`;
}
