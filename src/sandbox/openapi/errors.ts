import type { GuardName, GuardRules } from '../../contract/guards.ts';
import { RATE_HEADERS, STATUS_HEADERS, tierHeader } from './headers.ts';
import { pascalCase } from './names.ts';

/** The one form of every error of the API (Errors). */
export const ERROR_SCHEMA = {
  type: 'object',
  properties: {
    _error: {
      type: 'object',
      properties: {
        status: { type: 'integer', minimum: 400, maximum: 599 },
        title: { type: 'string', minLength: 1 },
        message: { type: 'string', minLength: 1 },
      },
      required: ['status', 'title', 'message'],
    },
  },
  required: ['_error'],
};

/** What the statuses of errors mean here. */
const MEANINGS = {
  400: 'The URL is malformed, a parameter of the query is wrong, or the body is no JSON object.',
  401: 'There is no valid token: it is missing, unknown, expired or revoked.',
  403: 'The token does not reach this: its scopes, or because it is private to a teammate.',
  404: 'There is no such thing here.',
  405: 'The path does not take this method.',
  413: 'The body is too long.',
  422: 'The body is an object, but something in it is wrong.',
  429: 'A limit is exceeded: the rate limit, or the guard of the route.',
} as const;

/** A status of an error. */
export type ErrorStatus = keyof typeof MEANINGS;

const NAMES: Record<ErrorStatus, string> = {
  400: 'BadRequest',
  401: 'Unauthorized',
  403: 'Forbidden',
  404: 'NotFound',
  405: 'MethodNotAllowed',
  413: 'TooLong',
  422: 'Unprocessable',
  429: 'TooManyRequests',
};

/** Whether `x-service-tier` is on the answer: a request that is not authenticated comes to no guard. */
function guardHeader(status: ErrorStatus, tier: string | undefined): object {
  return tier === undefined || status === 401 ? {} : tierHeader(tier, status !== 429);
}

function errorResponse(status: ErrorStatus, tier: string | undefined) {
  return {
    description: MEANINGS[status],
    headers: { ...RATE_HEADERS, ...STATUS_HEADERS[status], ...guardHeader(status, tier) },
    content: { 'application/json': { schema: { $ref: '#/components/schemas/Error' } } },
  };
}

function errorName(status: ErrorStatus, guard: GuardName | undefined): string {
  return `${guard === undefined ? '' : pascalCase(guard)}${NAMES[status]}`;
}

/** All errors, to refer to: those of routes without a guard, and of each guard's routes. */
export function errorResponses(guards: GuardRules): Record<string, object> {
  const statuses = Object.keys(MEANINGS).map(Number) as ErrorStatus[];
  const names = Object.keys(guards) as GuardName[];
  return Object.fromEntries(
    [undefined, ...names].flatMap((guard) =>
      statuses.map((status) => [
        errorName(status, guard),
        errorResponse(status, guard && guards[guard].tier),
      ]),
    ),
  );
}

/** A reference to an error. */
export function errorRef(status: ErrorStatus, guard: GuardName | undefined) {
  return { $ref: `#/components/responses/${errorName(status, guard)}` };
}
