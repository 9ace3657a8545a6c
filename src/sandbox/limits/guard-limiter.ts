import { type GuardName, type GuardRule, type GuardRules, guardLimit } from '../../contract/guards.ts';
import { BoundedMap } from '../state/bounded-map.ts';
import { type FurtherGuard, isFor } from './further-guard.ts';

/** As many buckets are kept; one of a guard of seconds is over long before it is the oldest. */
const BUCKETS_KEPT = 100_000;
/** Begins the name of a guard that is not the contract's; its tier follows. */
const FURTHER = 'further ';

interface Counted {
  companyId: string;
  scope: string;
  guard: string;
  bucket: string;
  /** When its window began, in ms since 1970. */
  start: number;
  used: number;
  limit: number;
}

/** Plain data. */
interface GuardState {
  buckets: [string, Counted][];
  further: Map<string, FurtherGuard>;
}

/** Where a guard's bucket stands; times in ms since 1970. */
export interface GuardReading {
  tier: string;
  remaining: number;
  resetAt: number;
}

/** A bucket whose window is open. */
export interface GuardBucket {
  companyId: string;
  /** `company`, or the main limit that the guard is a share of: `plan` or `partner`. */
  scope: string;
  guard: string;
  tier: string;
  bucket: string;
  limit: number;
  remaining: number;
  /** ms since 1970 */
  resetAt: number;
}

/** One request to a guarded route. */
export interface GuardedCall {
  /** One of the contract's, or the name of a further one. */
  guard: string;
  companyId: string;
  /** `company`, or for a guard that is a share of the main limit which one: each has buckets of its own. */
  scope: string;
  /** See `guardBucket` in the contract. */
  bucket: string;
  /** The caller's main limit, for a guard that is a share of it. */
  rateLimit: number;
}

/**
 * The additional rate guards (Limits): short windows against bursts, independent of the main limit. A window is fixed
 * and starts with its first request, as that of the main limit; a refused request counts nowhere.
 */
export class GuardLimiter {
  readonly #rules: GuardRules;
  #buckets = new BoundedMap<string, Counted>(BUCKETS_KEPT);
  #further = new Map<string, FurtherGuard>();

  constructor(rules: GuardRules) {
    this.#rules = rules;
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): GuardState {
    return { buckets: [...this.#buckets], further: this.#further };
  }

  set state({ buckets, further }: GuardState) {
    this.#buckets = new BoundedMap(BUCKETS_KEPT, buckets);
    this.#further = further;
  }

  /** Adds a guard that the specification does not have, in place of an earlier one of the same tier. */
  add(guard: FurtherGuard): void {
    const name = `${FURTHER}${guard.tier}`;
    this.#forget(name);
    this.#further.set(name, guard);
  }

  /** Forgets all further guards, and answers how many there were. */
  clear(): number {
    const { size } = this.#further;
    for (const name of this.#further.keys()) this.#forget(name);
    return size;
  }

  /** The names of the further guards that are for a request to this path. @param route pattern of what serves it */
  furtherFor(path: string, route: string | undefined): string[] {
    if (this.#further.size === 0) return [];
    return [...this.#further].filter(([, guard]) => isFor(guard, path, route)).map(([name]) => name);
  }

  /** What the guard's tier is called. */
  tierOf(guard: string): string {
    return this.#rule(guard).tier;
  }

  /** Where the bucket stands, without counting a request; `now` in ms since 1970. */
  read(call: GuardedCall, now: number): GuardReading {
    const rule = this.#rule(call.guard);
    const counted = this.#open(call, rule, now);
    const limit = guardLimit(rule, call.rateLimit);
    return {
      tier: rule.tier,
      remaining: Math.max(0, limit - (counted?.used ?? 0)),
      resetAt: (counted?.start ?? now) + rule.windowMs,
    };
  }

  /** Counts a request. */
  take(call: GuardedCall, now: number): void {
    const rule = this.#rule(call.guard);
    const { companyId, scope, guard, bucket } = call;
    const counted = this.#open(call, rule, now);
    if (counted !== undefined) counted.used += 1;
    else {
      const limit = guardLimit(rule, call.rateLimit);
      const key = keyOf(call);
      // Put at the end again, where the youngest are.
      this.#buckets.delete(key);
      this.#buckets.set(key, { companyId, scope, guard, bucket, start: now, used: 1, limit });
    }
  }

  /** The buckets whose window is open, newest first. */
  list(now: number, most: number): GuardBucket[] {
    const open = [...this.#buckets.values()].filter(({ guard, start }) =>
      isOpen(start, this.#rule(guard).windowMs, now),
    );
    return open
      .reverse()
      .slice(0, most)
      .map(({ companyId, scope, guard, bucket, start, used, limit }) => {
        const { tier, windowMs } = this.#rule(guard);
        const remaining = limit - used;
        return { companyId, scope, guard, tier, bucket, limit, remaining, resetAt: start + windowMs };
      });
  }

  #rule(guard: string): GuardRule {
    return this.#further.get(guard) ?? this.#rules[guard as GuardName];
  }

  #forget(name: string): void {
    this.#further.delete(name);
    for (const [key, { guard }] of this.#buckets) if (guard === name) this.#buckets.delete(key);
  }

  #open(call: GuardedCall, rule: GuardRule, now: number): Counted | undefined {
    const counted = this.#buckets.get(keyOf(call));
    return counted !== undefined && isOpen(counted.start, rule.windowMs, now) ? counted : undefined;
  }
}

function keyOf({ guard, companyId, scope, bucket }: GuardedCall): string {
  return `${guard} ${companyId} ${scope} ${bucket}`;
}

function isOpen(start: number, windowMs: number, now: number): boolean {
  return now >= start && now < start + windowMs;
}
