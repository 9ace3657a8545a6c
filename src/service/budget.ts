import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { PARTNER_LIMIT, WINDOW_MS } from '../contract/limits.ts';
import type { RateHeaders } from './headers.ts';
import { REQUEST_TIMEOUT_MS } from './http.ts';

/** How long a request may begin under a permit, in milliseconds: a process may stand still before it sends it. */
const GOOD_FOR_MS = 5_000;

/** How long a permit counts as in flight when its holder dies, in milliseconds: until any request is over. */
const LEASE_MS = GOOD_FOR_MS + REQUEST_TIMEOUT_MS;

/**
 * Permits of a window that are left to people: an install asks for the company's id before anything is known of the
 * company, so without a permit.
 */
const KEPT_FOR_PEOPLE = 2;

/** The share of a window that calls of the handler leave to the sync. */
export const LEFT_TO_SYNC = 0.1;

const SCRIPT = readFileSync(new URL('budget.lua', import.meta.url), 'utf8');

/** The bucket in which the guard of a route counts a request (Limits, "Additional rate guards"). */
export interface Bucket {
  /** The same for requests that count together. It goes into Redis: no plain recipients and the like. */
  name: string;
  /** The service's name of the guard. */
  tier: string;
  /** Requests in a window; the share of the company's rate limit where `share` is true. */
  limit: number;
  share?: true;
  /** Milliseconds. */
  windowMs: number;
}

/** The right to send one request. Its holder releases it, whatever becomes of the request. */
export interface Permit {
  id: string;
  company: string;
  /** The route that is called, with the specification's placeholders. */
  route: string;
  /** Absent where no guard of the route is known. */
  bucket?: Bucket | undefined;
  /** Until when its request may begin, by `performance.now()`: later the lease could end before the request does. */
  goodUntil: number;
}

/**
 * Where a service wants no requests for a while: the company; the guard's bucket, or the route; what was asked; or
 * either of the company and the route, which is in trouble.
 */
export type BlockKind = 'company' | 'bucket' | 'request' | 'trouble';

/** What became of a request. */
export interface Outcome {
  /** There was an answer. Without one, the service may have counted the request. */
  answered?: boolean;
  /** The answer was no success. */
  refused?: boolean;
  /** The limit's headers, if they make sense; or else the limit alone. */
  rate?: RateHeaders | undefined;
  toldLimit?: number | undefined;
  /** The request has surely not come to the service. */
  unsent?: boolean;
  /** The service wants no requests for so many milliseconds. */
  block?: { forMs: number; of: BlockKind } | undefined;
}

/** What a request waits for: the limit, a guard, or the end of a wait that the service asked for. */
export type WaitReason = 'limit' | 'guard' | 'blocked';

/** A permit, or how long to wait before asking again. */
export type Admission = { permit: Permit } | { permit: undefined; waitMs: number; why: WaitReason };

/** What the budget knows of a company; times in milliseconds since 1970 by Redis' clock. */
export interface BudgetState {
  limit: number | undefined;
  /** Requests left in the present window; undefined when nothing is known of one. */
  remaining: number | undefined;
  resetAt: number | undefined;
  burstRemaining: number | undefined;
  blockedUntil: number | undefined;
}

/** Redis cannot be asked for a permit. */
export class RedisError extends Error {
  override readonly name = 'RedisError';
}

interface BudgetCommand {
  rateBudget(...args: string[]): Promise<[waitMs: number, why: WaitReason | '']>;
}

/**
 * Decides when a request may go, for every process that shares the Redis. So the limit holds whatever the number of
 * workers (Limits, "Other rate limits": 120 a minute per company), and so do the additional rate guards.
 */
export class RateBudget {
  readonly #redis: Redis & BudgetCommand;
  readonly #kept: number;
  readonly #share: number;
  readonly #name: string = randomUUID();
  #granted = 0;

  /**
   * @param options.keptForPeople permits of a window that are not for those who ask here
   * @param options.leftToSync likewise the share of the limit: {@link LEFT_TO_SYNC} for calls of the handler
   */
  constructor(redis: Redis, { keptForPeople = KEPT_FOR_PEOPLE, leftToSync = 0 } = {}) {
    redis.defineCommand('rateBudget', { numberOfKeys: 3, lua: SCRIPT });
    this.#redis = redis as Redis & BudgetCommand;
    this.#kept = keptForPeople;
    this.#share = leftToSync;
  }

  /**
   * Asks for the right to send one request on behalf of a company.
   *
   * @param bucket where the route's guard will count it, if it has one
   * @throws RedisError
   */
  acquire(company: string, route: string, bucket?: Bucket): Promise<Admission> {
    return this.#admit(this.#newPermit(company, route, bucket));
  }

  /**
   * Gives a permit back with what became of its request.
   *
   * @throws RedisError; the permit's lease ends by itself then
   */
  async release(permit: Permit, outcome: Outcome): Promise<void> {
    await this.#run(permit, { release: released(permit, outcome) });
  }

  /**
   * Releases a permit and asks for the next one, for the same company, route and bucket, in one call.
   *
   * @throws RedisError
   */
  exchange(permit: Permit, outcome: Outcome): Promise<Admission> {
    return this.#admit(this.#newPermit(permit.company, permit.route, permit.bucket), permit, outcome);
  }

  /** Learns from the answer to a request without a permit, which asked for the company's id. @throws RedisError */
  async observe(company: string, rate: RateHeaders): Promise<void> {
    const permit = { id: '', company, route: '', goodUntil: Infinity };
    const release = { ...released(permit, { answered: true, rate }), unasked: true };
    await this.#run(permit, { release });
  }

  /** What is known now, for the dashboard. */
  async read(company: string): Promise<BudgetState> {
    const [text, [seconds, micros]] = await Promise.all([
      this.#redis.get(`${keyOf(company)}:state`),
      this.#redis.time(),
    ]);
    const now = Number(seconds) * 1_000 + Number(micros) / 1_000;
    const state: Partial<Record<string, number>> = JSON.parse(text ?? '{}');
    const { limit, used = 0, ours = 0, end = 0, blocked = 0, burst } = state;
    const isKnown = limit !== undefined && end > now;
    return {
      limit,
      remaining: isKnown ? Math.max(0, limit - Math.max(used, ours)) : undefined,
      resetAt: isKnown ? end : undefined,
      burstRemaining: burst,
      blockedUntil: blocked > now ? blocked : undefined,
    };
  }

  /** The time of a permit begins before Redis is asked: so it is over no later than there. */
  #newPermit(company: string, route: string, bucket: Bucket | undefined): Permit {
    const id = `${this.#name}:${++this.#granted}`;
    return { id, company, route, bucket, goodUntil: performance.now() + GOOD_FOR_MS };
  }

  async #admit(permit: Permit, last?: Permit, outcome: Outcome = {}): Promise<Admission> {
    const release = last && released(last, outcome);
    const [waitMs, why] = await this.#run(permit, { release, acquire: permit.id });
    return waitMs > 0 ? { permit: undefined, waitMs, why: why || 'limit' } : { permit };
  }

  async #run({ company, route, bucket }: Permit, action: Pick<Call, 'release' | 'acquire'>) {
    const key = keyOf(company);
    const call: Call = {
      ...action,
      route,
      bucket: bucket && { ...bucket, window: bucket.windowMs },
      lease: LEASE_MS,
      window: WINDOW_MS,
      limit: PARTNER_LIMIT,
      kept: this.#kept,
      share: this.#share,
    };
    const entries = `${key}:bucket:${bucket?.name ?? ''}`;
    return this.#redis
      .rateBudget(`${key}:state`, `${key}:flight`, entries, JSON.stringify(call))
      .catch((cause: Error) => {
        throw new RedisError(`Redis cannot be asked for a permit: ${cause.message}`, { cause });
      });
  }
}

/** What the script is told; times in milliseconds. */
interface Call {
  release?: ReturnType<typeof released> | undefined;
  /** The permit that is asked for. */
  acquire?: string;
  route: string;
  bucket: { name: string; limit: number; share?: true; window: number } | undefined;
  lease: number;
  window: number;
  limit: number;
  kept: number;
  share: number;
}

function released(
  { id }: Pick<Permit, 'id'>,
  { answered, refused, rate, toldLimit, unsent, block }: Outcome,
) {
  return {
    permit: id,
    answered: answered === true,
    refused: refused === true,
    unsent: unsent === true,
    limit: toldLimit,
    rate: rate && {
      limit: rate.limit,
      remaining: rate.remaining,
      reset: rate.resetMs,
      ends_in: rate.endsInMs,
      burst: rate.burstRemaining,
    },
    block: block && { ms: block.forMs, of: block.of },
  };
}

// The braces say where the id ends, in which there may be a colon.
function keyOf(company: string): string {
  return `budget:{${company}}`;
}
