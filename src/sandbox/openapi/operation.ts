import type { Operation } from '../../contract/api/api.ts';
import { acceptedMessage } from '../../contract/api/common.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import type { GuardRules } from '../../contract/guards.ts';
import { type Reach, SCOPE } from '../../contract/scopes.ts';
import { type ErrorStatus, errorRef } from './errors.ts';
import { PREFERENCE_HEADER, RATE_HEADERS, tierHeader } from './headers.ts';
import { placeholders } from './names.ts';
import type { JsonSchema, Schemas } from './schemas.ts';

/** The part of the API that a route belongs to: the first segment of its path. */
export function familyOf({ path }: RouteContract): string {
  return (path.split('/')[1] ?? '').replaceAll('_', ' ');
}

function parameters({ path, list, async }: RouteContract): object[] {
  const inPath = placeholders(path).map((name) => ({
    name,
    in: 'path',
    required: true,
    schema: { type: 'string', minLength: 1 },
  }));
  const refer = (name: string) => ({ $ref: `#/components/parameters/${name}` });
  return [
    ...inPath,
    ...(list === true ? [refer('limit'), refer('page_token')] : []),
    ...(async === true ? [refer('Prefer')] : []),
  ];
}

/** A page of a list (Resources, "Common response members"). */
function pageOf(item: JsonSchema): JsonSchema {
  return {
    type: 'object',
    properties: {
      _pagination: { $ref: '#/components/schemas/Pagination' },
      _links: { $ref: '#/components/schemas/PageLinks' },
      _results: { type: 'array', items: item },
    },
    required: ['_pagination', '_links', '_results'],
  };
}

function errorStatuses({ path, body, method }: RouteContract): ErrorStatus[] {
  // Also where nothing of it is wanted.
  const takesBody = method !== 'GET';
  return [
    400,
    401,
    403,
    ...(path.includes(':') ? [404 as const] : []),
    ...(takesBody ? [413 as const] : []),
    ...(takesBody && body !== undefined ? [422 as const] : []),
    429,
  ];
}

function responses(route: RouteContract, guards: GuardRules, { refer }: Schemas): object {
  const { answer, list, status = 200, async, guard, mediaType = 'application/json' } = route;
  const headers = {
    ...RATE_HEADERS,
    ...(guard === undefined ? {} : tierHeader(guards[guard.guard].tier, true)),
  };
  const body = (description: string, schema: JsonSchema) => ({
    description,
    headers,
    content: { [mediaType]: { schema } },
  });
  const later = body('Accepted: it is done later.', refer(acceptedMessage));
  const accepted = { ...later, headers: { ...later.headers, ...PREFERENCE_HEADER } };
  const item = refer(answer);
  const errors = errorStatuses(route).map((code) => [code, errorRef(code, guard?.guard)]);
  return {
    [status]: body(list === true ? 'A page of them.' : 'Done.', list === true ? pageOf(item) : item),
    ...(async === true ? { 202: accepted } : {}),
    ...Object.fromEntries(errors),
  };
}

/** Who may ask: an OAuth token for what is shared, an API token for everything that it has the scope for. */
function security(reach: Reach, method: string): object[] {
  if (reach === 'knowledge_base') return [{ apiToken: [SCOPE.knowledgeBase] }];
  const scopes = method === 'GET' ? [SCOPE.shared, SCOPE.sharedRead] : [SCOPE.shared];
  return scopes.flatMap((scope) => [{ oauth: [scope] }, { apiToken: [scope] }]);
}

function guardExtension({ guard: use }: RouteContract, guards: GuardRules): object {
  if (use === undefined) return {};
  const { tier, limit, share, windowMs } = guards[use.guard];
  return {
    'x-guard': {
      name: use.guard,
      tier,
      ...(share === true ? { share_of_rate_limit: limit } : { limit }),
      window_ms: windowMs,
      grouped_by: use.by,
      ...(use.pool === undefined ? {} : { shared_by: use.pool }),
    },
  };
}

/** One route as an operation object. `x-source` tells the specification's routes from ours, `x-guard` how it is guarded. */
export function operationObject(
  operation: Operation,
  route: RouteContract,
  guards: GuardRules,
  schemas: Schemas,
): object {
  const { method, summary, source, reach = 'shared', body } = route;
  return {
    operationId: operation,
    summary,
    tags: [familyOf(route)],
    'x-source': source,
    ...guardExtension(route, guards),
    security: security(reach, method),
    parameters: parameters(route),
    ...(body === undefined
      ? {}
      : {
          requestBody: {
            required: !body.safeParse({}).success,
            content: { 'application/json': { schema: schemas.refer(body) } },
          },
        }),
    responses: responses(route, guards, schemas),
  };
}
