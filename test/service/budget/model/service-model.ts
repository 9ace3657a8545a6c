import type { Headers } from '../../../../src/service/http.ts';

/** A guard of the service: so many requests on these routes in a window that starts with its first one. */
export interface GuardFacts {
  routes: readonly string[];
  limit: number;
  windowMs: number;
}

/** A limit of the customer's own: others use it, so many of them every so many ms, and our requests do not count against it. */
export interface OtherLimit {
  limit: number;
  everyMs: number;
  burst: number;
  /** Its windows are as long as the service's, and begin so many ms later. */
  laterMs: number;
}

/** How a service counts and what it says. */
export interface ServiceFacts {
  limit: number;
  windowMs: number;
  /** Windows begin with their first request, lie fixed on the service's clock, or slide: each request counts for one's length. */
  windows: 'first request' | 'aligned' | 'sliding';
  /** `x-ratelimit-reset` in whole seconds, cut or rounded up, or with its fraction. */
  reset: 'exact' | 'cut' | 'rounded up';
  /** The end that it tells is not the window's, but always so many ms ahead. */
  endsAheadMs?: number | undefined;
  /**
   * What `x-ratelimit-remaining` says: the truth; always the same, as of a limit that our requests do not count against;
   * too much; or less than nothing from the first request on.
   */
  remaining: 'true' | 'still' | 'slow' | 'overdrawn';
  /** What it tells of is this limit. */
  toldOf?: OtherLimit;
  /** `retry-after` in whole seconds, or with its fraction. */
  wholeRetryAfter: boolean;
  /** How far its clock is from the truth, in ms. */
  aheadMs: number;
  /** How far the clock of its `Date` is from that of its limit, in ms. */
  dateAheadMs: number;
  guard: GuardFacts | undefined;
}

/** How much of what is used is shown as used. */
const SHOWN = { true: 1, still: 0, slow: 1 / 3, overdrawn: 1 } as const;

/** What became of a request. */
export type Outcome = 'counted' | 'limit' | 'guard';

/** Counts requests as the specification says, and answers with its headers. The time comes in with every call. */
export class ServiceModel {
  facts: ServiceFacts;
  #start = Number.NEGATIVE_INFINITY;
  #used = 0;
  /** The requests of a window that slides. */
  #countedAt: number[] = [];
  #guardStart = Number.NEGATIVE_INFINITY;
  #guardUsed = 0;

  constructor(facts: ServiceFacts) {
    this.facts = facts;
  }

  /** What the service would still count now; a limit above the contract's only as far as that goes. */
  allowed(nowMs: number, contractLimit: number): number {
    this.#slide(nowMs + this.facts.aheadMs);
    const used = this.#isOpen(nowMs + this.facts.aheadMs) ? this.#used : 0;
    return Math.min(this.facts.limit, contractLimit) - used;
  }

  /** Whether the guard would let a request on this route through. */
  guardAllows(nowMs: number, route: string): boolean {
    const { guard, aheadMs } = this.facts;
    if (guard?.routes.includes(route) !== true) return true;
    return nowMs + aheadMs - this.#guardStart >= guard.windowMs || this.#guardUsed < guard.limit;
  }

  request(nowMs: number, route: string): { outcome: Outcome; headers: Headers } {
    const { limit, windowMs, windows, aheadMs, guard } = this.facts;
    const now = nowMs + aheadMs;
    this.#slide(now);
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
    if (windows === 'sliding') this.#countedAt.push(now);
    if (guarded) {
      if (now - this.#guardStart >= guard.windowMs) {
        this.#guardStart = now;
        this.#guardUsed = 0;
      }
      this.#guardUsed++;
    }
    return this.#answer(now, 'counted', 0);
  }

  /** A window that slides begins with the oldest request in it. */
  #slide(now: number): void {
    const { windows, windowMs } = this.facts;
    if (windows !== 'sliding') return;
    this.#countedAt = this.#countedAt.filter((at) => now < at + windowMs);
    this.#used = this.#countedAt.length;
    this.#start = this.#countedAt[0] ?? Number.NEGATIVE_INFINITY;
  }

  /** A window that began in the future is none: the clock was set back. */
  #isOpen(now: number): boolean {
    return now >= this.#start && now < this.#start + this.facts.windowMs;
  }

  #answer(now: number, outcome: Outcome, waitMs: number): { outcome: Outcome; headers: Headers } {
    const { reset, wholeRetryAfter, dateAheadMs, remaining } = this.facts;
    const { limit, used, endsAt } = this.#told(now);
    const resetAt = endsAt / 1_000;
    const shown = reset === 'exact' ? resetAt : reset === 'cut' ? Math.floor(resetAt) : Math.ceil(resetAt);
    const retryAfter = wholeRetryAfter ? Math.ceil(waitMs / 1_000) : Math.ceil(waitMs) / 1_000;
    return {
      outcome,
      headers: {
        date: new Date(now + dateAheadMs).toUTCString(),
        'x-ratelimit-limit': String(limit),
        'x-ratelimit-remaining': String(remaining === 'overdrawn' ? -used : Math.max(0, limit - used)),
        'x-ratelimit-reset': String(shown),
        ...(outcome === 'counted' ? {} : { 'retry-after': String(retryAfter) }),
        ...(outcome === 'guard' ? { 'x-service-tier': 'unheard-of' } : {}),
      },
    };
  }

  #told(now: number): { limit: number; used: number; endsAt: number } {
    const { limit, windowMs, endsAheadMs, remaining, toldOf } = this.facts;
    if (toldOf !== undefined) {
      const { laterMs, everyMs, burst } = toldOf;
      const start = Math.floor((now - laterMs) / windowMs) * windowMs + laterMs;
      const bursts = Math.floor(now / everyMs) - Math.floor(start / everyMs);
      return { limit: toldOf.limit, used: bursts * burst, endsAt: start + windowMs };
    }
    return {
      limit,
      used: Math.floor(this.#used * SHOWN[remaining]),
      endsAt: endsAheadMs === undefined ? this.#start + windowMs : now + endsAheadMs,
    };
  }
}
