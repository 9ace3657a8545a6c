import { HEADER } from '../../contract/headers.ts';
import { BURST_SHARE, BURST_WINDOWS, PARTNER_LIMIT } from '../../contract/limits.ts';
import { Problem } from '../http/answer.ts';
import type { Application } from '../state/applications.ts';
import { type Company, planLimit } from '../state/company.ts';
import { type Counted, countOne, openWindow } from './window.ts';

/** The company's own limit, or the one that all partner integrations of the company share (Limits). */
export type LimitScope = 'plan' | 'partner';

/** Both limits of a company. */
export const LIMIT_SCOPES = ['plan', 'partner'] as const satisfies readonly LimitScope[];

/** Which limit a caller's requests count against; without an application it is an API token of the company. */
export function scopeOf(application: Application | undefined): LimitScope {
  return application === undefined || application.kind === 'automation' ? 'plan' : 'partner';
}

/** The limit itself, in requests a window (Limits). */
export function limitOf(company: Company, scope: LimitScope): number {
  return scope === 'partner' ? PARTNER_LIMIT : planLimit(company);
}

/** Where a limit stands; times in ms since 1970. */
export interface Reading {
  limit: number;
  remaining: number;
  resetAt: number;
  burstLimit: number;
  burstRemaining: number;
  /** When the burst allowance is full again; undefined while it is. */
  burstResetAt: number | undefined;
}

/** How long, in milliseconds, until a request that was refused at `now` would be allowed. */
export function waitMs({ resetAt, burstResetAt }: Reading, now: number): number {
  return Math.min(resetAt, burstResetAt ?? resetAt) - now;
}

/** 429 (Errors): the exact wait in the message, and in whole seconds, rounded up, in `retry-after`. */
export function tooManyRequests(limit: string, wait: number): Problem {
  return new Problem(429, `${limit} exceeded. Please retry in ${wait} milliseconds.`, {
    [HEADER.retryAfter]: String(Math.ceil(wait / 1000)),
  });
}

/** The five headers of every API answer (Limits); the reset is in epoch seconds, with milliseconds as a fraction. */
export function rateHeaders(reading: Reading): Record<string, string> {
  return {
    [HEADER.limit]: String(reading.limit),
    [HEADER.remaining]: String(reading.remaining),
    [HEADER.reset]: String(reading.resetAt / 1000),
    [HEADER.burstLimit]: String(reading.burstLimit),
    [HEADER.burstRemaining]: String(reading.burstRemaining),
  };
}

/** Requests that were counted against a limit of a company: plain data. */
interface Bucket {
  window?: Counted;
  burst?: Counted;
}

/**
 * The standard and the partner limit of every company, each counted per company, never per token (Limits).
 *
 * A window is fixed: it starts with its first request. When its limit is used up, requests draw on the burst allowance,
 * half of the limit, which is full again ten windows after its first request. A refused request counts nowhere.
 */
export class Limiter {
  readonly #windowMs: number;
  readonly #burstMs: number;
  #buckets = new Map<string, Bucket>();

  /** @param windowMs length of the rate-limit window in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
    this.#burstMs = windowMs * BURST_WINDOWS;
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): Map<string, Bucket> {
    return this.#buckets;
  }

  set state(buckets: Map<string, Bucket>) {
    this.#buckets = buckets;
  }

  /** Counts a request if it is allowed, and tells whether it is; `now` in ms since 1970. */
  take(company: Company, scope: LimitScope, now: number): boolean {
    const key = `${scope} ${company.id}`;
    const bucket = this.#buckets.get(key) ?? {};
    const { remaining, burstRemaining } = this.read(company, scope, now);
    if (remaining > 0) bucket.window = countOne(bucket.window, this.#windowMs, now);
    else if (burstRemaining > 0) bucket.burst = countOne(bucket.burst, this.#burstMs, now);
    this.#buckets.set(key, bucket);
    return remaining > 0 || burstRemaining > 0;
  }

  /** Where a limit stands, without counting a request. */
  read(company: Company, scope: LimitScope, now: number): Reading {
    return this.#read(this.#buckets.get(`${scope} ${company.id}`) ?? {}, limitOf(company, scope), now);
  }

  /** The untouched reading of a limit of that size: shown to a caller of an unknown company. */
  readUntouched(limit: number, now: number): Reading {
    return this.#read({}, limit, now);
  }

  /** Every limit of these companies that something was counted against. */
  list(companies: readonly Company[], now: number) {
    return companies.flatMap((company) =>
      LIMIT_SCOPES.filter((scope) => this.#buckets.has(`${scope} ${company.id}`)).map((scope) => ({
        company,
        scope,
        reading: this.read(company, scope, now),
      })),
    );
  }

  #read(bucket: Bucket, limit: number, now: number): Reading {
    const window = openWindow(bucket.window, this.#windowMs, now);
    const burst = openWindow(bucket.burst, this.#burstMs, now);
    const burstLimit = Math.floor(limit * BURST_SHARE);
    return {
      limit,
      remaining: limit - (window?.used ?? 0),
      resetAt: (window?.start ?? now) + this.#windowMs,
      burstLimit,
      burstRemaining: burstLimit - (burst?.used ?? 0),
      burstResetAt: burst && burst.start + this.#burstMs,
    };
  }
}
