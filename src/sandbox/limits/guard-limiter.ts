import { type GuardName, type GuardRule, type GuardRules, guardLimit } from '../../contract/guards.ts';
import { meansRequest } from '../http/router.ts';
import { setBounded } from '../state/bounded-map.ts';
import type { GuardSpec, State } from '../types.ts';
import { type Counted, countOne, openWindow } from './window.ts';

/** As many buckets are kept; one of a guard of seconds is over long before it is the oldest. */
const BUCKETS_KEPT = 100_000;
/** Begins the name of a guard that is not the contract's; its tier follows. */
const FURTHER = 'further ';

/** Where a guard's bucket stands. */
type Reading = State['guards'][number];

/**
 * One request to a guarded route: `guard` is one of the contract's or the name of a further one, `bucket` as in
 * `guardBucket`. `scope` is `company`, or for a guard that is a share of the main limit which one: each has its buckets.
 */
export interface GuardedCall extends Pick<Reading, 'guard' | 'company_id' | 'scope' | 'bucket'> {
  /** The caller's main limit, for a guard that is a share of it. */
  rateLimit: number;
}

/**
 * The additional rate guards (Limits): short windows against bursts, independent of the main limit. A window is fixed
 * and starts with its first request, as that of the main limit; a refused request counts nowhere.
 */
export class GuardLimiter {
  /** Plain data; further guards by their name. */
  state = { buckets: new Map<string, GuardedCall & Counted>(), further: new Map<string, GuardSpec>() };
  readonly #rules: GuardRules;

  constructor(rules: GuardRules) {
    this.#rules = rules;
  }

  /** Adds a guard that the specification does not have, in place of an earlier one of the same tier. */
  add(guard: GuardSpec): void {
    const name = `${FURTHER}${guard.tier}`;
    this.#forget(name);
    this.state.further.set(name, guard);
  }

  /** Forgets all further guards, and answers how many there were. */
  clear(): number {
    const names = [...this.state.further.keys()];
    for (const name of names) this.#forget(name);
    return names.length;
  }

  /** The names of the further guards that are for a request to this path. @param route pattern of the route, if any */
  furtherFor(path: string, route: string | undefined): string[] {
    return [...this.state.further]
      .filter(([, { paths }]) => paths === undefined || paths.some((one) => meansRequest(one, path, route)))
      .map(([name]) => name);
  }

  /** Where the call's bucket stands, without counting a request; `now` in ms since 1970. */
  read(call: GuardedCall, now: number): Reading {
    const counted = this.state.buckets.get(keyOf(call));
    const open = openWindow(counted, this.#rule(call.guard).windowMs, now);
    return this.#reading(call, open ?? { start: now, used: 0 });
  }

  /** Counts a request. */
  take(call: GuardedCall, now: number): void {
    const { buckets } = this.state;
    const key = keyOf(call);
    const counted = countOne(buckets.get(key), this.#rule(call.guard).windowMs, now);
    // A new window goes to the end, where the youngest are.
    if (counted.used === 1) buckets.delete(key);
    setBounded(buckets, key, { ...call, ...counted }, BUCKETS_KEPT);
  }

  /** The buckets whose window is open, newest first. */
  list(now: number, most: number): Reading[] {
    return [...this.state.buckets.values()]
      .filter((bucket) => openWindow(bucket, this.#rule(bucket.guard).windowMs, now))
      .reverse()
      .slice(0, most)
      .map((bucket) => this.#reading(bucket, bucket));
  }

  #reading({ guard, company_id, scope, bucket, rateLimit }: GuardedCall, { start, used }: Counted): Reading {
    const rule = this.#rule(guard);
    const limit = guardLimit(rule, rateLimit);
    const stand = { limit, remaining: Math.max(0, limit - used), reset_at: start + rule.windowMs };
    return { guard, company_id, scope, bucket, tier: rule.tier, ...stand };
  }

  #rule(guard: string): GuardRule {
    const further = this.state.further.get(guard);
    if (further === undefined) return this.#rules[guard as GuardName];
    return { tier: further.tier, limit: further.requests, windowMs: further.per_ms };
  }

  #forget(name: string): void {
    const { buckets, further } = this.state;
    further.delete(name);
    for (const [key, { guard }] of buckets) if (guard === name) buckets.delete(key);
  }
}

function keyOf({ guard, company_id, scope, bucket }: GuardedCall): string {
  return `${guard} ${company_id} ${scope} ${bucket}`;
}
