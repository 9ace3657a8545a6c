import { type GuardName, type GuardRule, type GuardRules, guardLimit } from '../../contract/guards.ts';
import { meansRequest } from '../http/router.ts';
import { BoundedMap } from '../state/bounded-map.ts';
import { type Counted, countOne, openWindow } from './window.ts';

/** As many buckets are kept; one of a guard of seconds is over long before it is the oldest. */
const BUCKETS_KEPT = 100_000;
/** Begins the name of a guard that is not the contract's; its tier follows. */
const FURTHER = 'further ';

/** A guard that the specification does not have: a service may add one on any route. Plain data. */
export interface FurtherGuard extends GuardRule {
  /** Routes with the specification's placeholders, or literal paths, that count together; left out: every route. */
  paths?: readonly string[] | undefined;
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

/** Where a guard's bucket stands; times in ms since 1970. */
export interface GuardReading extends Omit<GuardedCall, 'rateLimit'> {
  tier: string;
  limit: number;
  remaining: number;
  resetAt: number;
}

type Bucket = GuardedCall & Counted;

/** Plain data. */
interface GuardState {
  buckets: [string, Bucket][];
  further: Map<string, FurtherGuard>;
}

/**
 * The additional rate guards (Limits): short windows against bursts, independent of the main limit. A window is fixed
 * and starts with its first request, as that of the main limit; a refused request counts nowhere.
 */
export class GuardLimiter {
  readonly #rules: GuardRules;
  #buckets = new BoundedMap<string, Bucket>(BUCKETS_KEPT);
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

  /** The names of the further guards that are for a request to this path. @param route pattern of the route, if any */
  furtherFor(path: string, route: string | undefined): string[] {
    return [...this.#further]
      .filter(([, { paths }]) => paths === undefined || paths.some((one) => meansRequest(one, path, route)))
      .map(([name]) => name);
  }

  /** Where the call's bucket stands, without counting a request; `now` in ms since 1970. */
  read(call: GuardedCall, now: number): GuardReading {
    const { windowMs } = this.#rule(call.guard);
    const open = openWindow(this.#buckets.get(keyOf(call)), windowMs, now);
    return this.#reading({ ...call, start: open?.start ?? now, used: open?.used ?? 0 });
  }

  /** Counts a request. */
  take(call: GuardedCall, now: number): void {
    const key = keyOf(call);
    const counted = countOne(this.#buckets.get(key), this.#rule(call.guard).windowMs, now);
    // A new window goes to the end, where the youngest are.
    if (counted.used === 1) this.#buckets.delete(key);
    this.#buckets.set(key, { ...call, ...counted });
  }

  /** The buckets whose window is open, newest first. */
  list(now: number, most: number): GuardReading[] {
    return [...this.#buckets.values()]
      .filter((bucket) => openWindow(bucket, this.#rule(bucket.guard).windowMs, now))
      .reverse()
      .slice(0, most)
      .map((bucket) => this.#reading(bucket));
  }

  #reading({ guard, companyId, scope, bucket, rateLimit, start, used }: Bucket): GuardReading {
    const rule = this.#rule(guard);
    const limit = guardLimit(rule, rateLimit);
    const remaining = Math.max(0, limit - used);
    return {
      guard,
      companyId,
      scope,
      bucket,
      tier: rule.tier,
      limit,
      remaining,
      resetAt: start + rule.windowMs,
    };
  }

  #rule(guard: string): GuardRule {
    return this.#further.get(guard) ?? this.#rules[guard as GuardName];
  }

  #forget(name: string): void {
    this.#further.delete(name);
    for (const [key, { guard }] of this.#buckets) if (guard === name) this.#buckets.delete(key);
  }
}

function keyOf({ guard, companyId, scope, bucket }: GuardedCall): string {
  return `${guard} ${companyId} ${scope} ${bucket}`;
}
