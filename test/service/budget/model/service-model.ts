import type { Headers } from '../../../../src/service/http.ts';

/** A guard of the service: so many requests on these routes in a window that starts with its first one. */
interface GuardFacts {
  routes: readonly string[];
  limit: number;
  windowMs: number;
}

/** How a service counts and what it says; times in milliseconds. */
export interface ServiceFacts {
  limit: number;
  windowMs: number;
  /** Windows begin with their first request, or lie fixed on the service's clock. */
  windows: 'first request' | 'aligned';
  /** `x-ratelimit-reset` in whole seconds, cut or rounded up, or with its fraction. */
  reset: 'exact' | 'cut' | 'rounded up';
  /** `x-ratelimit-remaining` falls, or tells of a limit that our requests do not count against. */
  remaining: 'true' | 'still';
  /** `retry-after` in whole seconds, or with its fraction. */
  wholeRetryAfter: boolean;
  /** How far its clock is ahead of ours. */
  aheadMs: number;
  guard: GuardFacts | undefined;
}

/** How the service judged a request. */
export type Verdict = 'counted' | 'limit' | 'guard';

/** Counts requests as the specification says, and answers with its headers. The time comes in with every call. */
export class ServiceModel {
  readonly facts: ServiceFacts;
  #start = Number.NEGATIVE_INFINITY;
  #used = 0;
  #guardStart = Number.NEGATIVE_INFINITY;
  #guardUsed = 0;

  constructor(facts: ServiceFacts) {
    this.facts = facts;
  }

  /** How many requests the service would count now, up to the contract's limit. */
  allowed(nowMs: number, contractLimit: number): number {
    const used = this.#isOpen(nowMs + this.facts.aheadMs) ? this.#used : 0;
    return Math.min(this.facts.limit, contractLimit) - used;
  }

  /** Whether the guard would let a request on this route through. */
  guardAllows(nowMs: number, route: string): boolean {
    const { guard, aheadMs } = this.facts;
    if (guard?.routes.includes(route) !== true) return true;
    return nowMs + aheadMs - this.#guardStart >= guard.windowMs || this.#guardUsed < guard.limit;
  }

  request(nowMs: number, route: string): { verdict: Verdict; headers: Headers } {
    const { limit, windowMs, windows, aheadMs, guard } = this.facts;
    const now = nowMs + aheadMs;
    if (!this.#isOpen(now)) {
      this.#start = windows === 'aligned' ? Math.floor(now / windowMs) * windowMs : now;
      this.#used = 0;
    }
    const guarded = guard?.routes.includes(route) === true;
    if (guarded && !this.guardAllows(nowMs, route)) {
      return this.#answer(now, 'guard', this.#guardStart + guard.windowMs - now);
    }
    if (this.#used >= limit) return this.#answer(now, 'limit', this.#start + windowMs - now);
    this.#used++;
    if (guarded) {
      if (now - this.#guardStart >= guard.windowMs) [this.#guardStart, this.#guardUsed] = [now, 0];
      this.#guardUsed++;
    }
    return this.#answer(now, 'counted', 0);
  }

  #isOpen(now: number): boolean {
    return now < this.#start + this.facts.windowMs;
  }

  #answer(now: number, verdict: Verdict, waitMs: number): { verdict: Verdict; headers: Headers } {
    const { limit, windowMs, reset, remaining, wholeRetryAfter } = this.facts;
    const left = remaining === 'still' ? limit : Math.max(0, limit - this.#used);
    const resetAt = (this.#start + windowMs) / 1_000;
    const shown = reset === 'exact' ? resetAt : reset === 'cut' ? Math.floor(resetAt) : Math.ceil(resetAt);
    const retryAfter = wholeRetryAfter ? Math.ceil(waitMs / 1_000) : Math.ceil(waitMs) / 1_000;
    return {
      verdict,
      headers: {
        date: new Date(now).toUTCString(),
        'x-ratelimit-limit': String(limit),
        'x-ratelimit-remaining': String(left),
        'x-ratelimit-reset': String(shown),
        ...(verdict === 'counted' ? {} : { 'retry-after': String(retryAfter) }),
        ...(verdict === 'guard' ? { 'x-service-tier': 'unheard-of' } : {}),
      },
    };
  }
}
