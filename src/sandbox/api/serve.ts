import type { z } from 'zod';
import type { RouteContract } from '../../contract/api/route.ts';
import { opens } from '../../contract/scopes.ts';
import { type Answer, json, Problem, settling } from '../http/answer.ts';
import type { Call } from '../http/call.ts';
import type { Matched } from '../http/router.ts';
import type { World } from '../world.ts';
import type { Caller } from './bearer.ts';
import type { RequestBody } from './json-body.ts';
import { Ready } from './request.ts';
import type { ApiRoute } from './routes.ts';

function refuseOutOfReach({ reach = 'shared', method }: RouteContract, { scopes }: Caller): void {
  if (!opens(scopes, reach, method !== 'GET')) {
    throw new Problem(403, `The token's scopes (${scopes.join(', ')}) do not reach this.`);
  }
}

/** The body as the contract has it. Throws a {@link Problem}: 400 for no JSON object, 422 for one that is wrong. */
function checkBody(schema: z.ZodType | undefined, body: RequestBody | undefined): unknown {
  if (body === undefined) return undefined;
  if ('problem' in body) throw body.problem;
  const { value } = body;
  if (typeof value !== 'object' || value === null || Array.isArray(value)) {
    throw new Problem(400, 'The body must be a JSON object.');
  }
  if (schema === undefined) return undefined;
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const issues = result.error.issues.map(({ path, message }) =>
    path.length > 0 ? `${path.join('.')}: ${message}` : message,
  );
  throw new Problem(422, issues.join('; '));
}

function answerOf(result: object, status: number): Answer {
  return result instanceof Ready ? result.answer : json(status, result);
}

/** Serves a request that counts already. Throws a {@link Problem} for what cannot be served. */
export function serve(
  world: World,
  call: Call,
  caller: Caller,
  { handle: { contract, handler }, params }: Matched<ApiRoute>,
  body: RequestBody | undefined,
  now: number,
): Answer | Promise<Answer> {
  refuseOutOfReach(contract, caller);
  const { company } = caller;
  const request = {
    world,
    call,
    caller,
    company,
    tables: company.tables,
    params,
    body: checkBody(contract.body, body),
    now,
  };
  const { status = 200 } = contract;
  const result = handler(request);
  return result instanceof Promise
    ? settling(result.then((later) => answerOf(later, status)))
    : answerOf(result, status);
}
