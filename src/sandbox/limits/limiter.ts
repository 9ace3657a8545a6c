import { HEADER } from '../../contract/headers.ts';
import {
  BURST_SHARE,
  BURST_WINDOWS,
  DEFAULT_PLAN,
  PARTNER_LIMIT,
  PLAN_LIMITS,
} from '../../contract/limits.ts';
import { Problem } from '../http/answer.ts';
import type { Company } from '../state/companies.ts';
import type { Application, State } from '../types.ts';
import { type Counted, countOne, openWindow } from './window.ts';

/** Both limits of a company: its own, and the one that all its partner integrations share (Limits). */
export const LIMIT_SCOPES = ['plan', 'partner'] as const;
export type LimitScope = (typeof LIMIT_SCOPES)[number];

/** Which limit a caller's requests count against; without an application it is an API token of the company. */
export function scopeOf(application: Application | undefined): LimitScope {
  return application === undefined || application.kind === 'automation' ? 'plan' : 'partner';
}

/** The limit in requests a window (Limits); the default plan's for a caller without a company. */
export function limitOf(company: Company | undefined, scope: LimitScope): number {
  if (scope === 'partner') return PARTNER_LIMIT;
  return PLAN_LIMITS[company?.plan ?? DEFAULT_PLAN] + (company?.addon_rpm ?? 0);
}

/** Where a limit stands; `burst_reset_at` is when the burst allowance is full again, null while it is. */
type Reading = State['limits'][number];

/** How long, in milliseconds, until a request that was refused at `now` would be allowed. */
export function waitMs({ reset_at, burst_reset_at }: Reading, now: number): number {
  return Math.min(reset_at, burst_reset_at ?? reset_at) - now;
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
    [HEADER.reset]: String(reading.reset_at / 1000),
    [HEADER.burstLimit]: String(reading.burst_limit),
    [HEADER.burstRemaining]: String(reading.burst_remaining),
  };
}

function keyOf(company: Company | undefined, scope: LimitScope): string {
  return `${scope} ${company?.id}`;
}

/**
 * The standard and the partner limit of every company, each counted per company, never per token (Limits).
 *
 * A window is fixed: it starts with its first request. When its limit is used up, requests draw on the burst allowance,
 * half of the limit, which is full again ten windows after its first request. A refused request counts nowhere.
 */
export class Limiter {
  /** Requests that were counted: plain data. */
  state = new Map<string, { window?: Counted; burst?: Counted }>();
  readonly #windowMs: number;
  readonly #burstMs: number;

  /** @param windowMs length of the rate-limit window in milliseconds */
  constructor(windowMs: number) {
    this.#windowMs = windowMs;
    this.#burstMs = windowMs * BURST_WINDOWS;
  }

  /** Counts a request that is allowed; `now` in ms since 1970. */
  take(company: Company, scope: LimitScope, now: number): void {
    const key = keyOf(company, scope);
    const bucket = this.state.get(key) ?? {};
    const { remaining } = this.read(company, scope, now);
    if (remaining > 0) bucket.window = countOne(bucket.window, this.#windowMs, now);
    else bucket.burst = countOne(bucket.burst, this.#burstMs, now);
    this.state.set(key, bucket);
  }

  /** Where a limit stands, without counting a request; an untouched one for a caller without a company. */
  read(company: Company | undefined, scope: LimitScope, now: number): Reading {
    const bucket = this.state.get(keyOf(company, scope));
    const window = openWindow(bucket?.window, this.#windowMs, now);
    const burst = openWindow(bucket?.burst, this.#burstMs, now);
    const limit = limitOf(company, scope);
    const burst_limit = Math.floor(limit * BURST_SHARE);
    return {
      company_id: company?.id ?? '',
      scope,
      limit,
      remaining: limit - (window?.used ?? 0),
      reset_at: (window?.start ?? now) + this.#windowMs,
      burst_limit,
      burst_remaining: burst_limit - (burst?.used ?? 0),
      burst_reset_at: burst ? burst.start + this.#burstMs : null,
    };
  }

  /** Every limit of these companies that something was counted against. */
  list(companies: readonly Company[], now: number): Reading[] {
    return companies.flatMap((company) =>
      LIMIT_SCOPES.filter((scope) => this.state.has(keyOf(company, scope))).map((scope) =>
        this.read(company, scope, now),
      ),
    );
  }
}
