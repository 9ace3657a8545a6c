import { HEADER } from '../../contract/headers.ts';
import { DEFAULT_PLAN, PLAN_LIMITS } from '../../contract/limits.ts';
import { type Answer, answering, errorAnswer } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { findRoute } from '../http/router.ts';
import { rateHeaders } from '../limits/rate-headers.ts';
import { type Reading, waitMs } from '../limits/window.ts';
import type { World } from '../world.ts';
import { authenticate, type Caller } from './bearer.ts';
import { API_ROUTES } from './routes.ts';

function withRate(answer: Answer, reading: Reading): Answer {
  return { ...answer, headers: { ...answer.headers, ...rateHeaders(reading) } };
}

/** 429 (Errors): the exact wait in the message, and in whole seconds, rounded up, in `retry-after`. */
function tooManyRequests(reading: Reading, now: number): Answer {
  const wait = waitMs(reading, now);
  return errorAnswer(429, `Rate limit exceeded. Please retry in ${wait} milliseconds.`, {
    [HEADER.retryAfter]: String(Math.ceil(wait / 1000)),
  });
}

function untouchedDefault(world: World): Reading {
  return world.limiter.readUntouched(PLAN_LIMITS[DEFAULT_PLAN], world.clock.now());
}

function serve(call: Call, { company }: Caller): Answer {
  return answering(() => {
    const { handle, params } = findRoute(API_ROUTES, call.method, call.path);
    return handle({ call, company, params });
  });
}

/**
 * Prepares a request to the API: who asks, and then, once it takes effect, the limit and the route.
 *
 * Every answer carries the five headers (Limits). An authenticated request counts, whatever its answer; a refused one
 * (401, 429) does not. Without a company that a token tells of, the headers show the default plan's limit, untouched.
 */
export function prepareApi(world: World, call: Call): Prepared {
  const { clock, limiter } = world;
  const found = authenticate(world, call.headers.authorization, clock.now());
  if ('answer' in found) {
    const { caller } = found;
    return {
      companyId: caller?.company.id,
      application: caller?.application,
      perform: (instead = found.answer) =>
        withRate(
          instead,
          caller === undefined
            ? untouchedDefault(world)
            : limiter.read(caller.company, caller.scope, clock.now()),
        ),
    };
  }
  const { company, application, scope } = found;
  return {
    companyId: company.id,
    application,
    perform(instead) {
      const now = clock.now();
      const allowed = limiter.take(company, scope, now);
      const reading = limiter.read(company, scope, now);
      return withRate(instead ?? (allowed ? serve(call, found) : tooManyRequests(reading, now)), reading);
    },
  };
}

/** An answer of the API to a request that got no further (an unreadable one, a foreign host), with the five headers. */
export function withDefaultRate(world: World, answer: Answer): Answer {
  return withRate(answer, untouchedDefault(world));
}
