import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { HEADER } from '../../contract/headers.ts';
import type { Fault } from '../faults.ts';
import type { World } from '../world.ts';
import { type Answer, errorAnswer, problemAnswer } from './answer.ts';
import type { Call } from './call.ts';
import { send, sendPart } from './send.ts';

/** A request of which it is known who asks, and that has not taken effect yet. */
export interface Prepared {
  companyId: string | undefined;
  /** The application's client id. */
  application: string | undefined;
  /** Lets the request take effect. @param instead answered in place of the route's own answer, which then has no effect */
  perform(instead?: Answer): Answer | Promise<Answer>;
}

/** Finds out who asks; it reads the body if it must. */
export type Prepare = (world: World, call: Call) => Prepared | Promise<Prepared>;

async function prepareOrRefuse(prepare: Prepare, world: World, call: Call): Promise<Prepared> {
  try {
    return await prepare(world, call);
  } catch (error) {
    const refusal = problemAnswer(error);
    return { companyId: undefined, application: undefined, perform: (instead = refusal) => instead };
  }
}

function bodyOf(fault: Fault): string {
  return typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body);
}

function replacement(fault: Fault): Answer | undefined {
  return fault.status === undefined ? undefined : errorAnswer(fault.status, 'This fault was ordered.');
}

function disturb(answer: Answer, fault: Fault): Answer {
  const body = fault.body === undefined ? answer.body : bodyOf(fault);
  const cut = fault.truncate === undefined || fault.drop === 'after';
  return {
    status: answer.status,
    headers: { ...answer.headers, ...fault.headers },
    body: cut ? body : Buffer.from(body).subarray(0, fault.truncate),
  };
}

function deliver(response: ServerResponse, answer: Answer, fault: Fault | undefined, now: number): number {
  if (fault?.drop !== 'after') send(response, answer, now);
  else if (fault.truncate !== undefined) sendPart(response, answer, fault.truncate, now);
  else {
    response.destroy();
    return 0;
  }
  return answer.status;
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
  const prepared = await prepareOrRefuse(prepare, world, call);
  const { companyId, application } = prepared;
  const fault = world.faults.take({ method: call.method, path: call.path, companyId });
  let status = 0;
  let headers: Record<string, string> = {};
  if (fault?.drop === 'before') {
    response.destroy();
  } else {
    const answer = await prepared.perform(fault && replacement(fault));
    const outgoing = fault === undefined ? answer : disturb(answer, fault);
    const delayMs = latencyMs + (fault?.delay_ms ?? 0);
    // A stopping process does not wait for answers that are still held back.
    if (delayMs > 0) await pause(delayMs, undefined, { ref: false });
    status = deliver(response, outgoing, fault, world.clock.now());
    headers = outgoing.headers;
  }
  const { method, path, search } = call;
  const remaining = headers[HEADER.remaining];
  world.journal.add({
    at,
    method,
    path,
    search,
    status,
    companyId,
    application,
    tier: headers[HEADER.tier],
    remaining: remaining === undefined ? undefined : Number(remaining),
    durationMs: performance.now() - startedAt,
  });
}
