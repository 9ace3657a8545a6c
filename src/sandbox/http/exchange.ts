import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { HEADER } from '../../contract/headers.ts';
import { deliver, disturb, leaveBehind } from '../faults/apply-fault.ts';
import type { Grant, Token } from '../state/tokens.ts';
import type { World } from '../world.ts';
import { type Answer, errorAnswer, problemAnswer } from './answer.ts';
import type { Call } from './call.ts';
import { send } from './send.ts';

/** A request of which it is known who asks, and that has not taken effect yet. */
export interface Prepared {
  companyId: string | undefined;
  /** The application's client id. */
  application: string | undefined;
  /** The access token that made the request. */
  token?: Token | undefined;
  /** What the token belongs to, or the code or refresh token in a request to the token route. */
  grant?: Grant | undefined;
  /** Pattern of the route that serves it, when it is one of the API's. */
  route?: string | undefined;
  /** See `JournalRow`. */
  ignored?: readonly string[];
  /** Lets the request take effect. @param instead answered in place of the route's own answer, which then has no effect */
  perform(instead?: Answer): Answer | Promise<Answer>;
}

/** Finds out who asks; it reads the body if it must. */
export type Prepare = (world: World, call: Call) => Promise<Prepared>;

/** A request that is refused before anybody knows who asks. */
function refused(problem: unknown): Prepared {
  const refusal = problemAnswer(problem);
  return { companyId: undefined, application: undefined, perform: (instead = refusal) => instead };
}

/**
 * The way of one request to the service's API or OAuth routes: who asks, ordered faults, the effect, the answer, and a
 * row in the journal.
 *
 * @param latencyMs real milliseconds by which the answer is held back
 */
export async function exchange(
  world: World,
  call: Call,
  response: ServerResponse,
  prepare: Prepare,
  latencyMs: number,
): Promise<void> {
  const at = world.clock.now();
  const startedAt = performance.now();
  const prepared = await prepare(world, call).catch(refused);
  const { companyId, application } = prepared;
  const { method, path, search } = call;
  const taken = world.faults.take({ method, path, route: prepared.route, companyId, application });
  const fault = taken?.fault;
  let status = 0;
  let headers: Record<string, string> = {};
  if (fault?.drop === 'before') {
    response.destroy();
  } else {
    const ordered = fault?.status;
    const instead = ordered === undefined ? undefined : errorAnswer(ordered, 'This fault was ordered.');
    const answer = await prepared.perform(instead);
    if (instead === undefined) {
      world.settings.onAnswer?.({ method, url: `${call.baseUrl}${path}${search}`, answer });
    }
    if (fault !== undefined) leaveBehind(world, fault, prepared);
    const outgoing = fault === undefined ? answer : disturb(answer, fault);
    const delayMs = latencyMs + (fault?.delay_ms ?? 0);
    // A stopping process does not wait for answers that are still held back.
    if (delayMs > 0) await pause(delayMs, undefined, { ref: false });
    headers = outgoing.headers;
    status = outgoing.status;
    if (fault === undefined) send(response, outgoing, world.clock.now());
    else status = await deliver(response, outgoing, fault, world.clock.now());
  }
  const remaining = headers[HEADER.remaining];
  world.journal.add({
    at,
    method,
    path,
    search,
    status,
    company_id: companyId ?? null,
    application: application ?? null,
    tier: headers[HEADER.tier] ?? null,
    remaining: remaining === undefined ? null : Number(remaining),
    fault: taken?.id ?? null,
    ignored: prepared.ignored ?? [],
    duration_ms: performance.now() - startedAt,
  });
}
