import type { RouteContract } from '../../contract/api/route.ts';
import { guardBucket } from '../../contract/guards.ts';
import type { GuardedCall } from '../limits/guard-limiter.ts';
import { limitOf } from '../limits/limiter.ts';
import type { Caller } from './bearer.ts';
import type { RequestBody } from './json-body.ts';

/** What the guard of a route counts a request under; undefined for a route without one. */
export function guardedCall(
  { guard: use, method, path }: RouteContract,
  params: Record<string, string>,
  { company, scope }: Caller,
  body: RequestBody | undefined,
): GuardedCall | undefined {
  if (use === undefined) return undefined;
  const value = body !== undefined && 'value' in body ? body.value : undefined;
  return {
    guard: use.guard,
    companyId: company.id,
    scope,
    bucket: guardBucket(use, `${method} ${path}`, params, value),
    rateLimit: limitOf(company, scope),
  };
}
