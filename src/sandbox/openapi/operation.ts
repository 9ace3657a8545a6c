import type { Operation } from '../../contract/api/api.ts';
import { acceptedMessage } from '../../contract/api/common.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import type { GuardRules } from '../../contract/guards.ts';
import { type Reach, SCOPE } from '../../contract/scopes.ts';
import type { Settings } from '../world.ts';
import { answerSchema } from './answer-schemas.ts';
import { type JsonSchema, pathParameters, refer, requestBody } from './parts.ts';
import { accepted, type ErrorStatus, errorOf, success } from './responses.ts';

/** The settings that the description follows. */
export type Described = Pick<Settings, 'guards' | 'readings'>;

/** The part of the API that a route belongs to: the first segment of its path. */
export function familyOf({ path }: RouteContract): string {
  return (path.split('/')[1] ?? '').replaceAll('_', ' ');
}

/** A page of a list (Resources, "Common response members"). */
function pageOf(item: JsonSchema): JsonSchema {
  return {
    type: 'object',
    properties: {
      _pagination: refer('schemas', 'Pagination'),
      _links: refer('schemas', 'PageLinks'),
      _results: { type: 'array', items: item },
    },
    required: ['_pagination', '_links', '_results'],
  };
}

function errorStatuses({ path, body, method }: RouteContract): ErrorStatus[] {
  // A route reads the body also where it wants nothing of it.
  const readsBody = method !== 'GET';
  return [
    400,
    401,
    403,
    ...(path.includes(':') ? [404 as const] : []),
    ...(readsBody ? [413 as const] : []),
    ...(body ? [422 as const] : []),
    429,
  ];
}

function responses(route: RouteContract, { guards, readings }: Described): object {
  const { method, answer, list, status = 200, async: later, guard, mediaType } = route;
  const tier = guard && guards[guard.guard].tier;
  const item = answerSchema(answer);
  const isSilent = method !== 'GET' && status === 200 && readings.changes === 204;
  return {
    ...(isSilent
      ? { 204: success('Done.', tier) }
      : { [status]: success(list ? 'A page.' : 'Done.', tier, list ? pageOf(item) : item, mediaType) }),
    ...(later && { 202: accepted(tier, answerSchema(acceptedMessage)) }),
    ...Object.fromEntries(errorStatuses(route).map((code) => [code, errorOf(code, tier)])),
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
      [share ? 'share_of_rate_limit' : 'limit']: limit,
      window_ms: windowMs,
      grouped_by: use.by,
      ...(use.pool && { shared_by: use.pool }),
    },
  };
}

/** One route as an operation object. `x-source` tells the specification's routes from ours, `x-guard` how it is guarded. */
export function operationObject(operationId: Operation, route: RouteContract, described: Described): object {
  const { method, path, summary, source, reach = 'shared', body, list, async: later } = route;
  const parameters = [...(list ? ['limit', 'page_token'] : []), ...(later ? ['Prefer'] : [])];
  return {
    operationId,
    summary,
    tags: [familyOf(route)],
    'x-source': source,
    ...guardExtension(route, described.guards),
    security: security(reach, method),
    parameters: [...pathParameters(path), ...parameters.map((name) => refer('parameters', name))],
    ...(body && { requestBody: requestBody(body) }),
    responses: responses(route, described),
  };
}
