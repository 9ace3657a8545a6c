import { z } from 'zod';
import { ROUTES } from '../../contract/api/api.ts';
import { acceptedMessage } from '../../contract/api/common.ts';
import * as contract from '../../contract/api/named-schemas.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import { HEADER } from '../../contract/headers.ts';
import type { Settings } from '../world.ts';
import { content, type JsonSchema, object, pascalCase, refer } from './nodes.ts';

const BODIES = new Set<unknown>(ROUTES.map(([, { body }]) => body));

/** Names of the schemas of answers: the contract's, or the operation's if only one route uses the schema. */
const NAMES = z.registry<{ id: string }>();
for (const [name, schema] of [
  ...Object.entries<unknown>(contract),
  ...ROUTES.map(([operation, { answer }]) => [`${operation}Answer`, answer] as const),
]) {
  if (!(schema instanceof z.ZodType) || BODIES.has(schema) || NAMES.has(schema)) continue;
  NAMES.add(schema, { id: pascalCase(name) });
}

const uri = (name: string) => refer('schemas', name).$ref;

/** The schemas of all answers, by name. */
export function answerSchemas(): Record<string, JsonSchema> {
  const { schemas } = z.toJSONSchema(NAMES, { io: 'output', unrepresentable: 'any', uri });
  return Object.fromEntries(
    Object.entries(schemas).map(([name, { $id, $schema, ...schema }]) => [name, schema as JsonSchema]),
  );
}

function header(description: string, schema: JsonSchema) {
  return { description, required: true, schema };
}

const whole = { type: 'integer', minimum: 0 };
const seconds = { type: 'number', minimum: 0 };
const later = { type: 'string', const: 'respond-async' };

/** Headers of answers (Limits; Errors). */
export const HEADERS = {
  [HEADER.limit]: header('The most requests that a window allows.', whole),
  [HEADER.remaining]: header('Requests that are left in this window.', whole),
  [HEADER.reset]: header('When the window ends: seconds since 1970, at most a minute ahead.', seconds),
  [HEADER.burstLimit]: header('The burst allowance: requests on top of the limit.', whole),
  [HEADER.burstRemaining]: header('The rest of the burst allowance.', whole),
  [HEADER.retryAfter]: header('Seconds to wait before the next try.', seconds),
  'www-authenticate': header('How to authenticate, and why the request was refused.', { type: 'string' }),
  'preference-applied': header('The answer is the asynchronous one.', later),
};

export function headers(...names: (keyof typeof HEADERS)[]) {
  return Object.fromEntries(names.map((name) => [name, refer('headers', name)]));
}

/** The five that every answer of the API has (Limits, "Response headers on every API response"). */
const { limit, remaining, reset, burstLimit, burstRemaining } = HEADER;
const RATE_HEADERS = headers(limit, remaining, reset, burstLimit, burstRemaining);

/** @param own headers besides the rate limit's */
function answer(description: string, own: object, schema?: JsonSchema, mediaType?: string) {
  const body = schema && { content: content(schema, mediaType) };
  return { description, headers: { ...RATE_HEADERS, ...own }, ...body };
}

/** Statuses of errors, and their meaning. */
const ERRORS: Record<number, string> = {
  400: 'The URL is malformed, a parameter of the query is wrong, or the body is no JSON object.',
  401: 'There is no valid token: it is missing, unknown, expired or revoked.',
  403: 'The token does not reach this: its scopes, or because it is private to a teammate.',
  404: 'There is no such thing here.',
  405: 'The path does not take this method.',
  413: 'The body is too long.',
  422: 'The body is an object, but something in it is wrong.',
  429: 'A limit is exceeded: the rate limit, or the guard of the route.',
};

const ERROR_HEADERS: Record<number, object> = {
  401: headers('www-authenticate'),
  429: headers(HEADER.retryAfter),
};

function error(status: number, own: object = {}) {
  const all = { ...ERROR_HEADERS[status], ...own };
  return answer(ERRORS[status] ?? '', all, refer('schemas', 'Error'));
}

/** Errors of routes without a guard, by status. */
export const ERROR_ANSWERS = Object.fromEntries(
  Object.keys(ERRORS).map((status) => [status, error(Number(status))]),
);

function errorStatuses({ path, body, method }: RouteContract): number[] {
  // A route reads the body also where it wants nothing of it.
  const readsBody = method !== 'GET';
  const statuses = [400, 401, 403, path.includes(':') && 404, readsBody && 413, body && 422, 429];
  return statuses.filter((status) => typeof status === 'number');
}

/** A page of a list (Resources, "Common response members"). */
function pageOf(item: JsonSchema): JsonSchema {
  return object({
    _pagination: refer('schemas', 'Pagination'),
    _links: refer('schemas', 'PageLinks'),
    _results: { type: 'array', items: item },
  });
}

/** All answers of a route, by status. */
export function answersOf(route: RouteContract, { guards, readings }: Pick<Settings, 'guards' | 'readings'>) {
  const { method, list, status = 200, guard, mediaType } = route;
  const schemaOf = (schema: z.ZodType) => refer('schemas', NAMES.get(schema)?.id ?? '');
  const tier = (required = true) => {
    if (guard === undefined) return {};
    const schema = { type: 'string', const: guards[guard.guard].tier };
    return { [HEADER.tier]: { description: 'The guard of this route.', required, schema } };
  };
  const item = schemaOf(route.answer);
  const isSilent = method !== 'GET' && status === 200 && readings.changes === 204;
  const answers: Record<number, object> = isSilent
    ? { 204: answer('Done.', tier()) }
    : { [status]: answer('Done.', tier(), list ? pageOf(item) : item, mediaType) };
  if (route.async) {
    const own = { ...headers('preference-applied'), ...tier() };
    answers[202] = answer('Accepted: it is done later.', own, schemaOf(acceptedMessage));
  }
  for (const code of errorStatuses(route)) {
    // A request that is not authenticated comes to no guard; a refusal by the main limit names none.
    answers[code] = !guard || code === 401 ? refer('responses', code) : error(code, tier(code !== 429));
  }
  return answers;
}
