import { createHash } from 'node:crypto';
import type { RouteContract } from '../../contract/api/route.ts';
import { type GuardRules, guardBucket } from '../../contract/guards.ts';

/** The bucket in which the guard of a route counts a request (Limits, "Additional rate guards"). */
export interface Bucket {
  /** The same for requests that count together; tells nothing of recipients and the like, as it goes into Redis. */
  name: string;
  /** What the service calls the guard. */
  tier: string;
  /** Requests in a window; the share of the company's rate limit where `share` is true. */
  limit: number;
  share?: true;
  /** Milliseconds. */
  windowMs: number;
}

/**
 * The bucket of a request; undefined for a route without a guard.
 *
 * @param params values of the path's placeholders
 * @param rules limits of the guards
 */
export function bucketOf(
  { guard, method, path }: RouteContract,
  params: Readonly<Record<string, string>>,
  body: unknown,
  rules: GuardRules,
): Bucket | undefined {
  if (guard === undefined) return undefined;
  const together = guardBucket(guard, `${method} ${path}`, params, body);
  return { ...rules[guard.guard], name: createHash('sha256').update(together).digest('base64url') };
}
