import type { ServerResponse } from 'node:http';
import { setTimeout as pause } from 'node:timers/promises';
import { HEADER } from '../../contract/headers.ts';
import { changeRecords } from '../state/change-records.ts';
import type { Grant, Token } from '../state/tokens.ts';
import type { Fault } from '../types.ts';
import type { World } from '../world.ts';
import { type Answer, errorAnswer, orProblem, problemAnswer } from './answer.ts';
import type { Call } from './call.ts';
import { send, sendPart } from './send.ts';

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

/** Revokes and changes after the request took effect. API tokens are not revoked: they are no grant. */
function leaveBehind({ companies, clock }: World, fault: Fault, prepared: Prepared): void {
  const { revoke, records } = fault;
  const { companyId, token, grant } = prepared;
  if (revoke === 'access_token' && token !== undefined) token.revoked = true;
  if (revoke === 'grant' && grant !== undefined) grant.revoked = true;
  const company = companies.get(companyId ?? '');
  if (records !== undefined && company !== undefined) changeRecords(company, records, clock.now());
}

/** An answer as the fault wants it. */
function disturb(answer: Answer, { body, headers = {}, truncate, drop }: Fault): Answer {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = body === undefined ? answer.body : text;
  const fields = Object.entries({ ...answer.headers, ...headers });
  return {
    status: answer.status,
    headers: Object.fromEntries(fields.filter((field): field is [string, string] => field[1] !== null)),
    body: truncate === undefined || drop === 'after' ? sent : Buffer.from(sent).subarray(0, truncate),
  };
}

/** Lets a request take effect, and then whatever its fault does: its answer, as it is to be sent. */
async function answerOf(world: World, call: Call, prepared: Prepared, fault?: Fault): Promise<Answer> {
  const { method, baseUrl, path, search } = call;
  const ordered = fault?.status;
  const instead = ordered === undefined ? undefined : errorAnswer(ordered, 'This fault was ordered.');
  const answer = await prepared.perform(instead);
  if (instead === undefined) world.settings.onAnswer?.({ method, url: `${baseUrl}${path}${search}`, answer });
  if (fault === undefined) return answer;
  // A record that the fault names may be gone by now.
  await orProblem(() => leaveBehind(world, fault, prepared));
  return disturb(answer, fault);
}

/** Sends a disturbed answer whole, in small pieces, or in part. @param now the moment in the `Date` header, in ms since 1970 */
async function deliver(response: ServerResponse, answer: Answer, fault: Fault, now: number): Promise<void> {
  const { drop, truncate, drip } = fault;
  const most = drop === 'after' ? truncate : undefined;
  if (drip === undefined && most === undefined) send(response, answer, now);
  else await sendPart(response, answer, now, most, drip);
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
  const answer = fault?.drop === 'before' ? undefined : await answerOf(world, call, prepared, fault);
  const { headers, body }: Pick<Answer, 'headers' | 'body'> = answer ?? { headers: {}, body: '' };
  const remaining = headers[HEADER.remaining];
  const isDropped = answer === undefined || (fault?.drop === 'after' && fault.truncate === undefined);
  const delayMs = answer === undefined ? 0 : latencyMs + (fault?.delay_ms ?? 0);
  // A stopping process does not wait for answers that are still held back.
  if (delayMs > 0) await pause(delayMs, undefined, { ref: false });
  if (isDropped) response.destroy();
  else if (fault === undefined) send(response, answer, world.clock.now());
  else await deliver(response, answer, fault, world.clock.now());
  const row = {
    at,
    method,
    path,
    search,
    status: isDropped ? 0 : answer.status,
    company_id: companyId ?? null,
    application: application ?? null,
    tier: headers[HEADER.tier] ?? null,
    remaining: remaining === undefined ? null : Number(remaining),
    fault: taken?.id ?? null,
    ignored: prepared.ignored ?? [],
    duration_ms: performance.now() - startedAt,
  };
  world.journal.add(row, { headers: call.headers, body: call.sent ?? '' }, { headers, body });
}
