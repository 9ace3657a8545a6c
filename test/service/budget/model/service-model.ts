import type { Headers } from '../../../../src/service/http.ts';

/** A guard of some routes. Its window starts with its first request. */
interface GuardFacts {
  routes: readonly string[];
  limit: number;
  windowMs: number;
}

/** How a service counts, and what its headers say. Times are milliseconds. */
export interface ServiceFacts {
  limit: number;
  windowMs: number;
  /** Windows start with their first request, or at fixed times of the service's clock. */
  windows: 'first request' | 'aligned';
  /** How `x-ratelimit-reset` loses its fraction, if it does. */
  reset: 'exact' | 'cut' | 'rounded up';
  /** `x-ratelimit-remaining` falls, or never changes. */
  remaining: 'true' | 'still';
  /** Whether `retry-after` lacks its fraction. */
  wholeRetryAfter: boolean;
  /** How far its clock is ahead of ours. */
  aheadMs: number;
  guard: GuardFacts | undefined;
}

/** How the service judged a request. */
export type Verdict = 'counted' | 'limit' | 'guard';

/** Counts requests as the specification says, and answers with its headers. Each call brings the time. */
export class ServiceModel {
  readonly facts: ServiceFacts;
  #start = Number.NEGATIVE_INFINITY;
  #used = 0;
  #guardStart = Number.NEGATIVE_INFINITY;
  #guardUsed = 0;

  constructor(facts: ServiceFacts) {
    this.facts = facts;
  }

  /** How many more requests the service would count, up to the contract's limit. */
  allowed(nowMs: number, contractLimit: number): number {
    const used = this.#isOpen(nowMs + this.facts.aheadMs) ? this.#used : 0;
    return Math.min(this.facts.limit, contractLimit) - used;
  }

  /** Whether the guard would allow a request on this route. */
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
