import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { PARTNER_LIMIT, WINDOW_MS } from '../contract/limits.ts';
import type { RateHeaders } from './headers.ts';
import { REQUEST_TIMEOUT_MS } from './http.ts';

/** How long a permit is good for, in milliseconds: the process may stand still before it sends the request. */
const GOOD_FOR_MS = 5_000;

/** How long a permit counts as in flight if its holder dies, in milliseconds. */
export const PERMIT_LEASE_MS = GOOD_FOR_MS + REQUEST_TIMEOUT_MS;

/** Permits of a window for people: an install asks for the company's id, and has no permit. */
const RESERVED_FOR_PEOPLE = 2;

/** The share of the limit that calls of the handler leave to the sync. */
export const LEFT_TO_SYNC = 0.1;

const SCRIPT = readFileSync(new URL('budget.lua', import.meta.url), 'utf8');

/** The bucket in which a route's guard counts a request (Limits, "Additional rate guards"). */
export interface Bucket {
  /** The same for requests that count together. Redis stores it, so it is hashed: it may hold recipients. */
  name: string;
  /** Requests in a window; a share of the company's limit if `share` is true. */
  limit: number;
  share?: true;
  windowMs: number;
}

/** What a request counts against. */
interface Target {
  company: string;
  /** With the specification's placeholders. */
  route: string;
  /** Undefined if the route has no known guard. */
  bucket: Bucket | undefined;
}

/** The right to send one request. Its holder always releases it. */
export interface Permit extends Target {
  id: string;
  /** When the right to begin the request ends, by `performance.now()`. */
  goodUntil: number;
}

/**
 * What a service blocks: the company; the guard's bucket, or the route if the guard is unknown; the same route for this
 * request; or, after a server error, the route and at first the company.
 */
export type BlockKind = 'company' | 'bucket' | 'request' | 'error';

/** What became of a request. */
export interface Outcome {
  /** There was an answer. Without one, the service may have counted the request. */
  answered?: boolean;
  /** The answer was no success. */
  refused?: boolean;
  /** The limit's headers, or the limit alone if the others make no sense. */
  rate?: RateHeaders | undefined;
  limit?: number | undefined;
  /** The request did not reach the service. */
  unsent?: boolean;
  /** The service wants no requests for so long. */
  block?: { forMs: number; of: BlockKind } | undefined;
}

/** What a request waits for: the limit, a guard, or a wait that the service asked for. */
type WaitReason = 'limit' | 'guard' | 'blocked';

/** A permit, or how long to wait before the next try. */
export type Admission = { permit: Permit } | { permit: undefined; waitMs: number; why: WaitReason };

/** What the budget knows of a company. Times are milliseconds since 1970 by Redis' clock. */
export interface BudgetState {
  limit: number | undefined;
  /** Requests left in the present window; undefined if the window is unknown. */
  remaining: number | undefined;
  resetAt: number | undefined;
  burstRemaining: number | undefined;
  blockedUntil: number | undefined;
}

/** Redis did not answer. */
export class RedisError extends Error {
  override readonly name = 'RedisError';
}

interface BudgetCommand {
  rateBudget(...args: string[]): Promise<[waitMs: number, why: WaitReason | '']>;
}

/**
 * Decides when a request may go, for all processes on one Redis. So the limit holds with any number of workers (Limits,
 * "Other rate limits": 120 a minute per company), and so do the rate guards.
 */
export class RateBudget {
  readonly #redis: Redis & BudgetCommand;
  readonly #reserved: { people: number; share: number };
  readonly #name: string = randomUUID();
  #granted = 0;

  /**
   * @param options.reservedForPeople permits of a window that this budget does not grant
   * @param options.leftToSync a share of the limit that it does not grant either: {@link LEFT_TO_SYNC}
   */
  constructor(redis: Redis, { reservedForPeople = RESERVED_FOR_PEOPLE, leftToSync = 0 } = {}) {
    redis.defineCommand('rateBudget', { numberOfKeys: 3, lua: SCRIPT });
    this.#redis = redis as Redis & BudgetCommand;
    this.#reserved = { people: reservedForPeople, share: leftToSync };
  }

  /** Asks for a permit. @throws RedisError */
  acquire(company: string, route: string, bucket?: Bucket): Promise<Admission> {
    return this.#admit({ company, route, bucket });
  }

  /** Gives a permit back. @throws RedisError; then the permit's lease runs out */
  async release(permit: Permit, outcome: Outcome): Promise<void> {
    await this.#run(permit, { release: { ...outcome, permit: permit.id } });
  }

  /** Gives a permit back and asks for the same one again, in one call. @throws RedisError */
  exchange(permit: Permit, outcome: Outcome): Promise<Admission> {
    return this.#admit(permit, { ...outcome, permit: permit.id });
  }

  /** Learns from the answer to a request without a permit. @throws RedisError */
  async observe(company: string, rate: RateHeaders): Promise<void> {
    const target = { company, route: '', bucket: undefined };
    await this.#run(target, { release: { answered: true, rate, permit: '' } });
  }

  /** What the budget knows now, for the dashboard. */
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

  async #admit({ company, route, bucket }: Target, release?: Call['release']): Promise<Admission> {
    const id = `${this.#name}:${++this.#granted}`;
    // Taken before Redis is asked, so that the permit ends here no later than there.
    const goodUntil = performance.now() + GOOD_FOR_MS;
    const permit = { id, company, route, bucket, goodUntil };
    const [waitMs, why] = await this.#run(permit, { release, acquire: id });
    return waitMs > 0 ? { permit: undefined, waitMs, why: why || 'limit' } : { permit };
  }

  async #run({ company, route, bucket }: Target, call: Call) {
    const key = keyOf(company);
    const keys = [`${key}:state`, `${key}:flight`, `${key}:bucket:${bucket?.name ?? ''}`];
    const limits = { leaseMs: PERMIT_LEASE_MS, windowMs: WINDOW_MS, limit: PARTNER_LIMIT };
    const all = { ...call, ...limits, route, bucket, reserved: this.#reserved };
    return this.#redis.rateBudget(...keys, JSON.stringify(all)).catch((cause: Error) => {
      throw new RedisError(`Redis gave no permit: ${cause.message}`, { cause });
    });
  }
}

/** What the script is asked to do. */
interface Call {
  /** An empty permit stands for a request without one. */
  release?: (Outcome & { permit: string }) | undefined;
  /** The id of a new permit. */
  acquire?: string;
}

// The braces end the id, which may hold a colon.
function keyOf(company: string): string {
  return `budget:{${company}}`;
}
