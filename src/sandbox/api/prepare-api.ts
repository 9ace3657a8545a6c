import { HEADER } from '../../contract/headers.ts';
import { DEFAULT_PLAN, PLAN_LIMITS } from '../../contract/limits.ts';
import { type Answer, answering, errorAnswer, problemAnswer } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { findRoute, type Matched } from '../http/router.ts';
import type { GuardedCall } from '../limits/guard-limiter.ts';
import { type Reading, rateHeaders, waitMs } from '../limits/limiter.ts';
import type { World } from '../world.ts';
import { authenticate, type Caller } from './bearer.ts';
import { guardedCalls } from './guarded-call.ts';
import { type RequestBody, readJsonBody } from './json-body.ts';
import { API_ROUTES, type ApiRoute } from './routes.ts';
import { serve } from './serve.ts';

function withHeaders(answer: Answer, headers: Record<string, string>): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** 429 (Errors): the exact wait in the message, and in whole seconds, rounded up, in `retry-after`. */
function tooManyRequests(what: string, wait: number): Answer {
  return errorAnswer(429, `${what} exceeded. Please retry in ${wait} milliseconds.`, {
    [HEADER.retryAfter]: String(Math.ceil(wait / 1000)),
  });
}

function untouchedDefault(world: World): Reading {
  return world.limiter.readUntouched(PLAN_LIMITS[DEFAULT_PLAN], world.clock.now());
}

/** The route of a request, or the answer when there is none. */
function matchRoute({ method, path }: Call): Matched<ApiRoute> | Answer {
  try {
    return findRoute(API_ROUTES, method, path);
  } catch (error) {
    return problemAnswer(error);
  }
}

function isOver({ remaining, burstRemaining }: Reading): boolean {
  return remaining === 0 && burstRemaining === 0;
}

/**
 * Lets an authenticated request take effect, if the limits allow it: the main limit first, then the guards of the route.
 * One that is refused by any counts for none, and everything else counts for all, whatever its answer.
 * `x-service-tier` names the guard on every answer of a guarded route, but for a refusal by the main limit: there it
 * would name a limit that was not exceeded.
 */
function perform(
  world: World,
  caller: Caller,
  guarded: readonly GuardedCall[],
  answer: (now: number) => Answer | Promise<Answer>,
): Answer | Promise<Answer> {
  const { clock, limiter, guards } = world;
  const { company, scope } = caller;
  const now = clock.now();
  const before = limiter.read(company, scope, now);
  if (isOver(before)) {
    return withHeaders(tooManyRequests('Rate limit', waitMs(before, now)), rateHeaders(before));
  }
  const readings = guarded.map((call) => guards.read(call, now));
  const guard = readings.find(({ remaining }) => remaining === 0);
  if (guard !== undefined) {
    const refusal = tooManyRequests(`Rate limit ${guard.tier}`, guard.resetAt - now);
    return withHeaders(refusal, { ...rateHeaders(before), [HEADER.tier]: guard.tier });
  }
  limiter.take(company, scope, now);
  for (const call of guarded) guards.take(call, now);
  const [first] = readings;
  const tier = first === undefined ? {} : { [HEADER.tier]: first.tier };
  const rate = rateHeaders(limiter.read(company, scope, now));
  // A 429 that comes from behind the guard is another limit's.
  const finish = (served: Answer) => withHeaders(served, served.status === 429 ? rate : { ...rate, ...tier });
  const served = answer(now);
  return served instanceof Promise ? served.then(finish) : finish(served);
}

function prepareFor(world: World, call: Call, caller: Caller, body: RequestBody | undefined): Prepared {
  const route = matchRoute(call);
  const matched = 'status' in route ? undefined : route;
  const guarded = guardedCalls(world.guards, call.path, matched, caller, body);
  return {
    companyId: caller.company.id,
    application: caller.application,
    token: caller.token,
    grant: caller.token?.grant,
    route: 'status' in route ? undefined : route.handle.contract.path,
    perform: (instead) =>
      perform(world, caller, guarded, (now) => {
        if (instead !== undefined) return instead;
        if ('status' in route) return route;
        return answering(() => serve(world, call, caller, route, body, now));
      }),
  };
}

/**
 * Prepares a request to the API: who asks, what the body is, and then, once it takes effect, limits and route.
 *
 * Every answer carries the five headers (Limits). An authenticated request counts, whatever its answer; a refused one
 * (401, 429) does not. Without a company that a token tells of, the headers show the default plan's limit, untouched.
 */
export function prepareApi(world: World, call: Call): Prepared | Promise<Prepared> {
  const { clock, limiter } = world;
  const found = authenticate(world, call.headers.authorization, clock.now());
  if ('answer' in found) {
    const { caller } = found;
    return {
      companyId: caller?.company.id,
      application: caller?.application,
      perform: (instead = found.answer) =>
        withHeaders(
          instead,
          rateHeaders(
            caller === undefined
              ? untouchedDefault(world)
              : limiter.read(caller.company, caller.scope, clock.now()),
          ),
        ),
    };
  }
  if (call.method === 'GET') return prepareFor(world, call, found, undefined);
  return readJsonBody(call).then((body) => prepareFor(world, call, found, body));
}

/** An answer of the API to a request that got no further (an unreadable one, a foreign host), with the five headers. */
export function withDefaultRate(world: World, answer: Answer): Answer {
  return withHeaders(answer, rateHeaders(untouchedDefault(world)));
}
