import { ROUTES } from '../../contract/api/api.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import { GUARDS, guardBucket } from '../../contract/guards.ts';
import { HEADER } from '../../contract/headers.ts';
import { DEFAULT_PLAN, PLAN_LIMITS } from '../../contract/limits.ts';
import { opens } from '../../contract/scopes.ts';
import { messageId } from '../data/messages.ts';
import { type Answer, check, json, Problem, problemAnswer } from '../http/answer.ts';
import { type Call, parseJson } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { findRoute, type Matched, type Route } from '../http/router.ts';
import type { GuardedCall } from '../limits/guard-limiter.ts';
import { limitOf, rateHeaders, scopeOf, tooManyRequests, waitMs } from '../limits/limiter.ts';
import { isRevoked, isValid } from '../state/tokens.ts';
import type { World } from '../world.ts';
import { HANDLERS } from './handlers.ts';
import { type ApiContext, type Caller, Ready } from './request.ts';

const REALM = 'Bearer realm="sandbox"';

const BODY_MAX_BYTES = 1024 * 1024;

/** What is kept of a body is written again with every list and snapshot, level by level, on the stack. */
const MOST_LEVELS = 500;

/** How many ignored parts of a request the journal names, and how much of each. */
const IGNORED_MAX = { parts: 20, characters: 100 };

/** A handler, told its parameters and its body: both are checked against the contract, which its types are made of. */
type AnyHandler = (request: ApiContext & { params: Record<string, string>; body: unknown }) => object;

interface ApiRoute {
  contract: RouteContract;
  handler: AnyHandler;
}

/** The API's routes below `{base_url}` (Endpoints): the contract's, all of them. */
const API_ROUTES: readonly Route<ApiRoute>[] = ROUTES.map(([operation, contract]) => ({
  method: contract.method,
  path: contract.path,
  handle: { contract, handler: HANDLERS[operation] as AnyHandler },
}));

/** A request before it counts: problems with its route and its body are answered once it does. */
interface Request extends ApiContext {
  route: Matched<ApiRoute> | Problem;
  contract: RouteContract | undefined;
  body: object | Problem;
}

/**
 * Prepares a request to the API. First it finds out who asks, the route and the body. When the request then takes
 * effect, it passes the main limit, the guards and the token's scopes, before the route's handler answers.
 *
 * Every answer carries the five headers (Limits). An authenticated request counts, whatever its answer; a refused one
 * (401, 429) does not. To a request without a company the headers show the default plan's limit, untouched.
 */
export async function prepareApi(world: World, call: Call): Promise<Prepared> {
  const { caller, refusal } = authenticate(world, call.headers.authorization, world.clock.now());
  const who = { companyId: caller?.company.id, application: caller?.application };
  if (caller === undefined || refusal !== undefined) {
    return { ...who, perform: (instead = problemAnswer(refusal)) => withRate(world, instead, caller) };
  }
  const route = await orProblem(() => findRoute(API_ROUTES, call.method, call.path));
  const hasBody = call.method !== 'GET' && call.method !== 'HEAD';
  const body = hasBody ? await orProblem(() => readObject(call)) : {};
  const contract = route instanceof Problem ? undefined : route.handle.contract;
  const { company, token } = caller;
  const now = world.clock.now();
  const { tables } = company;
  const request = { world, call, caller, company, tables, now, at: now / 1000, route, contract, body };
  return {
    ...who,
    token,
    grant: token?.grant,
    route: contract?.path,
    ignored: ignoredOf(request),
    perform: (instead) => perform(request, guardedCalls(request), instead),
  };
}

function refuse(message: string, challenge = ''): Problem {
  return new Problem(401, message, { 'www-authenticate': `${REALM}${challenge}` });
}

function refuseToken(message: string): Problem {
  return refuse(message, `, error="invalid_token", error_description="${message}"`);
}

/**
 * Finds out who asks, by `Authorization: Bearer` with an access token or a company's API token (Authentication, 6). A
 * refresh token opens nothing here. A refused caller only tells whose an expired or revoked token was.
 */
function authenticate(
  world: World,
  authorization: string | undefined,
  now: number,
): { caller?: Caller; refusal?: Problem } {
  if (authorization === undefined) {
    return { refusal: refuse('An access token is needed: Authorization: Bearer.') };
  }
  const [, value] = /^Bearer +([^\s]+)$/i.exec(authorization) ?? [];
  if (value === undefined) return { refusal: refuse('The API takes Bearer authentication alone.') };
  const own = world.companies.byApiToken(value);
  if (own !== undefined) {
    const { company, apiToken } = own;
    const { scopes } = apiToken;
    return { caller: { company, application: undefined, token: undefined, scopes, scope: 'plan' } };
  }
  const token = world.tokens.find('access', value);
  const company = token && world.companies.get(token.grant.companyId);
  if (token === undefined || company === undefined)
    return { refusal: refuseToken('The access token is unknown.') };
  const { clientId: application, scopes } = token.grant;
  const scope = scopeOf(world.applications.get(application));
  const caller = { company, application, token, scopes, scope };
  if (isRevoked(token)) return { caller, refusal: refuseToken('The access token was revoked.') };
  return isValid(token, now) ? { caller } : { caller, refusal: refuseToken('The access token has expired.') };
}

function withHeaders(answer: Answer, headers: Record<string, string>): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** An answer with the five headers, also to a request that got no further (an unreadable one, a foreign host). */
export function withRate({ limiter, clock }: World, answer: Answer, caller?: Caller): Answer {
  const now = clock.now();
  const reading =
    caller === undefined
      ? limiter.readUntouched(PLAN_LIMITS[DEFAULT_PLAN], now)
      : limiter.read(caller.company, caller.scope, now);
  return withHeaders(answer, rateHeaders(reading));
}

async function orProblem<T>(step: () => T | Promise<T>): Promise<T | Problem> {
  try {
    return await step();
  } catch (error) {
    if (error instanceof Problem) return error;
    throw error;
  }
}

/** The members of the body, as far as it could be read. */
function sentOf({ body }: Request): object {
  return body instanceof Problem ? {} : body;
}

/**
 * Reads a request's body as a JSON object, whatever its content type; an empty one is an empty object. Throws a
 * {@link Problem}: 413 for a long one, 400 for one that is something else.
 */
async function readObject(call: Call): Promise<object> {
  const bytes = await call.body(BODY_MAX_BYTES);
  const value = bytes.length === 0 ? {} : parseJson(bytes);
  if (isDeep(value)) throw new Problem(400, `The body has more than ${MOST_LEVELS} levels.`);
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Problem(400, 'The body must be a JSON object.');
  }
  return value;
}

function isDeep(value: unknown): boolean {
  const containers = (values: unknown[]) => values.filter((one) => typeof one === 'object' && one !== null);
  let level = containers([value]);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MOST_LEVELS) return true;
    level = containers(level.flatMap((one) => Object.values(one as object)));
  }
  return false;
}

/** Query parameters and members of the body that the route does not know. */
function ignoredOf(request: Request): string[] {
  const { list, body } = request.contract ?? {};
  const known = [
    ...(list === true ? ['query limit', 'query page_token'] : []),
    ...Object.keys(body?.shape ?? {}).map((name) => `body ${name}`),
  ];
  const sent = new Set([
    ...[...request.call.query.keys()].map((name) => `query ${name}`),
    ...Object.keys(sentOf(request)).map((name) => `body ${name}`),
  ]);
  const ignored = [...sent].filter((part) => !known.includes(part)).slice(0, IGNORED_MAX.parts);
  return ignored.map((part) => part.slice(0, IGNORED_MAX.characters));
}

/** Everything that guards count a request under: the guard that the contract has for the route, then further ones. */
function guardedCalls(request: Request): GuardedCall[] {
  const { world, call, caller, company, route, contract } = request;
  const companyId = company.id;
  const further = world.guards
    .furtherFor(call.path, contract?.path)
    .map((guard) => ({ guard, companyId, scope: 'company', bucket: guard, rateLimit: 0 }));
  if (route instanceof Problem || route.handle.contract.guard === undefined) return further;
  const { params } = route;
  const { guard: use, method, path } = route.handle.contract;
  // A message has two names, its id and its `message_uid`, but one bucket.
  const { message_id: message } = params;
  const named = message ? { ...params, message_id: messageId(message) } : params;
  const own = {
    guard: use.guard,
    companyId,
    // A guard is the company's, whoever asks; one that is a share of the caller's limit goes with that limit.
    scope: 'share' in GUARDS[use.guard] ? caller.scope : 'company',
    bucket: guardBucket(use, `${method} ${path}`, named, sentOf(request)),
    rateLimit: limitOf(company, caller.scope),
  };
  return [own, ...further];
}

/**
 * Lets an authenticated request take effect, if the limits allow it: the main limit first, then the guards of the route.
 * One that is refused by any counts for none, and everything else counts for all, whatever its answer.
 * `x-service-tier` names the guard on every answer of a guarded route, but for a refusal by the main limit: there it
 * would name a limit that was not exceeded.
 *
 * @param instead answered in place of the route's own answer
 */
async function perform(request: Request, guarded: GuardedCall[], instead?: Answer): Promise<Answer> {
  const { world, company, caller, now } = request;
  const { limiter, guards } = world;
  const { scope } = caller;
  const before = limiter.read(company, scope, now);
  if (before.remaining === 0 && before.burstRemaining === 0) {
    const refusal = problemAnswer(tooManyRequests('Rate limit', waitMs(before, now)));
    return withHeaders(refusal, rateHeaders(before));
  }
  const readings = guarded.map((call) => guards.read(call, now));
  const full = readings.find(({ remaining }) => remaining === 0);
  if (full !== undefined) {
    const refusal = problemAnswer(tooManyRequests(`Rate limit ${full.tier}`, full.resetAt - now));
    return withHeaders(refusal, { ...rateHeaders(before), [HEADER.tier]: full.tier });
  }
  limiter.take(company, scope, now);
  for (const call of guarded) guards.take(call, now);
  const rate = rateHeaders(limiter.read(company, scope, now));
  const [first] = readings;
  const answer = instead ?? (await serve(request).catch(problemAnswer));
  // A 429 that comes from behind the guard is another limit's.
  const tier = first === undefined || answer.status === 429 ? {} : { [HEADER.tier]: first.tier };
  return withHeaders(answer, { ...rate, ...tier });
}

/** Serves a request that counts already. Throws a {@link Problem} for what cannot be served. */
async function serve(request: Request): Promise<Answer> {
  const { world, call, caller, route, body } = request;
  if (route instanceof Problem) throw route;
  if (/%(?![\da-f]{2})/i.test(call.path + call.search)) throw new Problem(400, 'The URL has a % on its own.');
  const { handle, params } = route;
  const { reach = 'shared', method, status = 200, body: schema } = handle.contract;
  if (!opens(caller.scopes, reach, method !== 'GET')) {
    throw new Problem(403, `The token's scopes (${caller.scopes.join(', ')}) do not reach this.`);
  }
  if (body instanceof Problem) throw body;
  const result = await handle.handler({ ...request, params, body: schema && check(schema, body, 422) });
  if (result instanceof Ready) return result.answer;
  const isSilent = method !== 'GET' && status === 200 && world.settings.readings.changes === 204;
  return isSilent ? { status: 204, headers: {}, body: '' } : json(status, result);
}
