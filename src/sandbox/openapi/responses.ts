import { HEADER } from '../../contract/headers.ts';
import { content, refer } from './parts.ts';

function header(description: string, schema: object) {
  return { description, required: true, schema };
}

const whole = { type: 'integer', minimum: 0 };
const seconds = { type: 'number', minimum: 0 };

/** Headers of answers (Limits; Errors). */
export const HEADERS = {
  [HEADER.limit]: header('The most requests that a window allows.', whole),
  [HEADER.remaining]: header('Requests that are left in this window.', whole),
  [HEADER.reset]: header('When the window ends: seconds since 1970, at most a minute ahead.', seconds),
  [HEADER.burstLimit]: header('The burst allowance: requests on top of the limit.', whole),
  [HEADER.burstRemaining]: header('What is left of the burst allowance.', whole),
  [HEADER.retryAfter]: header('Seconds to wait before the next try.', seconds),
  'www-authenticate': header('How to authenticate, and what was wrong.', { type: 'string' }),
  'preference-applied': header('The answer is the asynchronous one.', {
    type: 'string',
    const: 'respond-async',
  }),
};

function headers(...names: (keyof typeof HEADERS)[]) {
  return Object.fromEntries(names.map((name) => [name, refer('headers', name)]));
}

/** The five headers that every answer of the API has (Limits, "Response headers on every API response"). */
const { limit, remaining, reset, burstLimit, burstRemaining } = HEADER;
const RATE_HEADERS = headers(limit, remaining, reset, burstLimit, burstRemaining);

/** The guard of a route. @param required not on a refusal by the main limit */
function tierHeader(tier: string | undefined, required = true) {
  if (tier === undefined) return {};
  return {
    [HEADER.tier]: {
      description: 'The guard of this route.',
      required,
      schema: { type: 'string', const: tier },
    },
  };
}

/** An answer that is no error; one without a schema has no body. @param tier of the route's guard */
export function success(description: string, tier: string | undefined, schema?: object, mediaType?: string) {
  return {
    description,
    headers: { ...RATE_HEADERS, ...tierHeader(tier) },
    ...(schema && { content: content({ ...schema }, mediaType) }),
  };
}

/** The answer to `Prefer: respond-async` (RFC 7240). */
export function accepted(tier: string | undefined, schema: object) {
  const answer = success('Accepted: it is done later.', tier, schema);
  return { ...answer, headers: { ...answer.headers, ...headers('preference-applied') } };
}

/** What the statuses of errors are called, and mean. */
const ERRORS = {
  400: [
    'BadRequest',
    'The URL is malformed, a parameter of the query is wrong, or the body is no JSON object.',
  ],
  401: ['Unauthorized', 'There is no valid token: it is missing, unknown, expired or revoked.'],
  403: ['Forbidden', 'The token does not reach this: its scopes, or because it is private to a teammate.'],
  404: ['NotFound', 'There is no such thing here.'],
  405: ['MethodNotAllowed', 'The path does not take this method.'],
  413: ['TooLong', 'The body is too long.'],
  422: ['Unprocessable', 'The body is an object, but something in it is wrong.'],
  429: ['TooManyRequests', 'A limit is exceeded: the rate limit, or the guard of the route.'],
} as const;

/** A status of an error. */
export type ErrorStatus = keyof typeof ERRORS;

function errorResponse(status: ErrorStatus, tier?: string) {
  return {
    description: ERRORS[status][1],
    headers: {
      ...RATE_HEADERS,
      ...(status === 401 && headers('www-authenticate')),
      ...(status === 429 && headers(HEADER.retryAfter)),
      ...tierHeader(tier, status !== 429),
    },
    content: content(refer('schemas', 'Error')),
  };
}

/** Errors of routes without a guard, by name. */
export const ERROR_RESPONSES = Object.fromEntries(
  Object.entries(ERRORS).map(([status, [name]]) => [name, errorResponse(Number(status) as ErrorStatus)]),
);

/** An error of a route; a request that is not authenticated comes to no guard. */
export function errorOf(status: ErrorStatus, tier: string | undefined): object {
  return tier === undefined || status === 401
    ? refer('responses', ERRORS[status][0])
    : errorResponse(status, tier);
}
