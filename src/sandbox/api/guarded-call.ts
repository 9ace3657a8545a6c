import type { RouteContract } from '../../contract/api/route.ts';
import { GUARDS, guardBucket } from '../../contract/guards.ts';
import type { Matched } from '../http/router.ts';
import type { GuardedCall, GuardLimiter } from '../limits/guard-limiter.ts';
import { limitOf } from '../limits/limiter.ts';
import type { Company } from '../state/company.ts';
import type { Caller } from './bearer.ts';
import type { RequestBody } from './json-body.ts';
import type { ApiRoute } from './routes.ts';

/** A message has two names, its id and its `message_uid`, but one bucket. */
function canonical(params: Record<string, string>, { correspondence }: Company): Record<string, string> {
  const { message_id: message } = params;
  return message === undefined ? params : { ...params, message_id: correspondence.messageId(message) };
}

/** What the contract's guard of a route counts a request under; undefined for a route without one. */
function ownGuard(
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
    // A guard is the company's, whoever asks; one that is a share of the caller's limit goes with that limit.
    scope: 'share' in GUARDS[use.guard] ? scope : 'company',
    bucket: guardBucket(use, `${method} ${path}`, canonical(params, company), value),
    rateLimit: limitOf(company, scope),
  };
}

/**
 * Everything that guards count a request under: the guard that the contract has for the route, then further ones.
 *
 * @param matched the route; undefined when there is none
 */
export function guardedCalls(
  guards: GuardLimiter,
  path: string,
  matched: Matched<ApiRoute> | undefined,
  caller: Caller,
  body: RequestBody | undefined,
): GuardedCall[] {
  const contract = matched?.handle.contract;
  const own = matched && contract && ownGuard(contract, matched.params, caller, body);
  const further = guards.furtherFor(path, contract?.path).map((guard) => ({
    guard,
    companyId: caller.company.id,
    scope: 'company',
    bucket: guard,
    rateLimit: 0,
  }));
  return own === undefined ? further : [own, ...further];
}
