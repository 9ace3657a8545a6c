import { ROUTES } from '../../contract/api/api.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import { GUARDS, guardBucket } from '../../contract/guards.ts';
import { HEADER } from '../../contract/headers.ts';
import { opens } from '../../contract/scopes.ts';
import { messageId } from '../data/messages.ts';
import { type Answer, check, json, orProblem, Problem, problemAnswer } from '../http/answer.ts';
import { type Call, ignoredParts, parseObject } from '../http/call.ts';
import type { Prepared } from '../http/exchange.ts';
import { findRoute, type Matched, type Route } from '../http/router.ts';
import type { GuardedCall } from '../limits/guard-limiter.ts';
import { limitOf, rateHeaders, scopeOf, tooManyRequests, waitMs } from '../limits/limiter.ts';
import { isRevoked, isValid } from '../state/tokens.ts';
import type { World } from '../world.ts';
import { HANDLERS } from './handlers.ts';
import { ApiContext, type Caller, Ready } from './request.ts';

const REALM = 'Bearer realm="sandbox"';
const BODY_MAX_BYTES = 1024 * 1024;
/** What is kept of a body is written again with every list and snapshot, level by level, on the stack. */
const MOST_LEVELS = 500;

interface ApiRoute {
  contract: RouteContract;
  /** Its parameters and its body are checked against the contract, which the handlers' types are made of. */
  handler: (request: ApiContext) => object;
}

/** The API's routes below `{base_url}` (Endpoints): the contract's, all of them. */
const API_ROUTES: readonly Route<ApiRoute>[] = ROUTES.map(([operation, contract]) => ({
  method: contract.method,
  path: contract.path,
  handle: { contract, handler: HANDLERS[operation] as ApiRoute['handler'] },
}));

/** What a request asks for; problems with its route and its body are answered once it counts. */
interface Asked {
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
  const asked = { route, contract: route instanceof Problem ? undefined : route.handle.contract, body };
  const request = new ApiContext(world, call, caller);
  return {
    ...who,
    token: caller.token,
    grant: caller.token?.grant,
    route: asked.contract?.path,
    ignored: ignoredOf(call, asked),
    perform: (instead) => perform(request, asked, instead),
  };
}

function refuse(message: string, challenge = ''): { refusal: Problem } {
  return { refusal: new Problem(401, message, { 'www-authenticate': `${REALM}${challenge}` }) };
}

function refuseToken(message: string): { refusal: Problem } {
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
  if (authorization === undefined) return refuse('An access token is needed: Authorization: Bearer.');
  const [, value] = /^Bearer +([^\s]+)$/i.exec(authorization) ?? [];
  if (value === undefined) return refuse('The API takes Bearer authentication alone.');
  const own = world.companies.byApiToken(value);
  if (own !== undefined) {
    return { caller: { ...own, application: undefined, token: undefined, limit: 'plan' } };
  }
  const token = world.tokens.find('access', value);
  const company = token && world.companies.get(token.grant.companyId);
  if (token === undefined || company === undefined) return refuseToken('The access token is unknown.');
  const { clientId: application, scopes } = token.grant;
  const limit = scopeOf(world.applications.get(application));
  const caller = { company, application, token, scopes, limit };
  if (isRevoked(token)) return { caller, ...refuseToken('The access token was revoked.') };
  return isValid(token, now) ? { caller } : { caller, ...refuseToken('The access token has expired.') };
}

function withHeaders(answer: Answer, headers: Record<string, string>): Answer {
  return { ...answer, headers: { ...answer.headers, ...headers } };
}

/** An answer with the five headers, also to a request that got no further (an unreadable one, a foreign host). */
export function withRate({ limiter, clock }: World, answer: Answer, caller?: Caller): Answer {
  const reading = limiter.read(caller?.company, caller?.limit ?? 'plan', clock.now());
  return withHeaders(answer, rateHeaders(reading));
}

/**
 * Reads a request's body as a JSON object, whatever its content type; an empty one is an empty object. Throws a
 * {@link Problem}: 413 for a long one, 400 for one that is something else.
 */
async function readObject(call: Call): Promise<object> {
  const value = parseObject(await call.body(BODY_MAX_BYTES));
  if (isDeep(value)) throw new Problem(400, `The body has more than ${MOST_LEVELS} levels.`);
  return value;
}

function isDeep(value: unknown): boolean {
  let level = [value];
  for (let depth = 0; depth <= MOST_LEVELS; depth++) {
    const containers = level.filter((one) => typeof one === 'object' && one !== null);
    if (containers.length === 0) return false;
    level = containers.flatMap((one) => Object.values(one as object));
  }
  return true;
}

/** Query parameters and members of the body that the route does not know. */
function ignoredOf({ query }: Call, { contract, body }: Asked): string[] {
  const members = body instanceof Problem ? [] : Object.keys(body);
  return [
    ...ignoredParts('query', query.keys(), contract?.list === true ? ['limit', 'page_token'] : []),
    ...ignoredParts('body', members, Object.keys(contract?.body?.shape ?? {})),
  ];
}

/** Everything that guards count a request under: the guard that the contract has for the route, then further ones. */
function guardedCalls({ world, call, caller }: ApiContext, { route, contract, body }: Asked): GuardedCall[] {
  const company_id = caller.company.id;
  const further = world.guards
    .furtherFor(call.path, contract?.path)
    .map((guard) => ({ guard, company_id, scope: 'company', bucket: guard, rateLimit: 0 }));
  if (route instanceof Problem || contract?.guard === undefined) return further;
  // A message has two names, its id and its `message_uid`, but one bucket.
  const { message_id: message } = route.params;
  const params = message ? { ...route.params, message_id: messageId(message) } : route.params;
  const { guard: use, method, path } = contract;
  const own = {
    guard: use.guard,
    company_id,
    // A guard is the company's; one that is a share of the caller's limit goes with that limit.
    scope: 'share' in GUARDS[use.guard] ? caller.limit : 'company',
    bucket: guardBucket(use, `${method} ${path}`, params, body instanceof Problem ? {} : body),
    rateLimit: limitOf(caller.company, caller.limit),
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
async function perform(request: ApiContext, asked: Asked, instead?: Answer): Promise<Answer> {
  const { world, company, caller, now } = request;
  const { limiter, guards } = world;
  const before = limiter.read(company, caller.limit, now);
  if (before.remaining === 0 && before.burst_remaining === 0) {
    const refusal = problemAnswer(tooManyRequests('Rate limit', waitMs(before, now)));
    return withHeaders(refusal, rateHeaders(before));
  }
  const guarded = guardedCalls(request, asked);
  const readings = guarded.map((call) => guards.read(call, now));
  const full = readings.find(({ remaining }) => remaining === 0);
  if (full !== undefined) {
    const refusal = problemAnswer(tooManyRequests(`Rate limit ${full.tier}`, full.reset_at - now));
    return withHeaders(refusal, { ...rateHeaders(before), [HEADER.tier]: full.tier });
  }
  limiter.take(company, caller.limit, now);
  for (const call of guarded) guards.take(call, now);
  const rate = rateHeaders(limiter.read(company, caller.limit, now));
  const [first] = readings;
  const answer = instead ?? (await serve(request, asked).catch(problemAnswer));
  // A 429 that comes from behind the guard is another limit's.
  const tier = first === undefined || answer.status === 429 ? {} : { [HEADER.tier]: first.tier };
  return withHeaders(answer, { ...rate, ...tier });
}

/** Serves a request that counts already. Throws a {@link Problem} for what cannot be served. */
async function serve(request: ApiContext, asked: Asked): Promise<Answer> {
  const { route, body } = asked;
  const { world, call, caller } = request;
  if (route instanceof Problem) throw route;
  if (/%(?![\da-f]{2})/i.test(call.path + call.search)) throw new Problem(400, 'The URL has a % on its own.');
  const { contract, handler } = route.handle;
  const { reach = 'shared', method, status = 200, body: schema } = contract;
  if (!opens(caller.scopes, reach, method !== 'GET')) {
    throw new Problem(403, `The token's scopes (${caller.scopes.join(', ')}) do not reach this.`);
  }
  if (body instanceof Problem) throw body;
  const unknown = world.settings.strict ? ignoredOf(call, asked) : [];
  if (unknown.length > 0)
    throw new Problem(400, `The service does not know: ${unknown.join(', ')} (strict).`);
  const checked = { params: route.params, body: schema && check(schema, body, 422) };
  const result = await handler(Object.assign(request, checked));
  if (result instanceof Ready) return result.answer;
  const isSilent = method !== 'GET' && status === 200 && world.settings.readings.changes === 204;
  return isSilent ? { status: 204, headers: {}, body: '' } : json(status, result);
}
