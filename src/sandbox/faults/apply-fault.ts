import type { ServerResponse } from 'node:http';
import { type Answer, errorAnswer } from '../http/answer.ts';
import { send, sendPart, sendPieces } from '../http/send.ts';
import { changeRecords } from '../state/change-records.ts';
import type { Grant, Token } from '../state/tokens.ts';
import type { Fault } from '../types.ts';
import type { World } from '../world.ts';

/** Who made a request, and what allowed it. */
export interface Allowance {
  companyId: string | undefined;
  /** The access token that made it. */
  token?: Token | undefined;
  /** What the token belongs to, or the code or refresh token in a request to the token route. */
  grant?: Grant | undefined;
}

/** Answered in place of the route's own answer; undefined when the request shall take effect. */
export function replacement({ status }: Fault): Answer | undefined {
  return status === undefined ? undefined : errorAnswer(status, 'This fault was ordered.');
}

/** Revokes and changes after the request took effect. API tokens are not revoked: they are no grant. */
export function leaveBehind(
  { companies, clock }: World,
  { revoke, records }: Fault,
  { companyId, token, grant }: Allowance,
): void {
  if (revoke === 'access_token' && token !== undefined) token.revoked = true;
  if (revoke === 'grant' && grant !== undefined) grant.revoked = true;
  const company = companies.get(companyId ?? '');
  if (records !== undefined && company !== undefined) changeRecords(company, records, clock.now());
}

/** An answer as the fault wants it. */
export function disturb(answer: Answer, { body, headers = {}, truncate, drop }: Fault): Answer {
  const text = typeof body === 'string' ? body : JSON.stringify(body);
  const sent = body === undefined ? answer.body : text;
  const fields = Object.entries({ ...answer.headers, ...headers });
  return {
    status: answer.status,
    headers: Object.fromEntries(fields.filter((field): field is [string, string] => field[1] !== null)),
    body: truncate === undefined || drop === 'after' ? sent : Buffer.from(sent).subarray(0, truncate),
  };
}

/**
 * Sends a disturbed answer the way that the fault wants it: whole, in small pieces, in part, or not at all.
 *
 * @param now the moment in the `Date` header, in ms since 1970
 * @returns the status for the journal: 0 when nothing is sent
 */
export async function deliver(
  response: ServerResponse,
  answer: Answer,
  { drop, truncate, drip }: Fault,
  now: number,
): Promise<number> {
  const bytes = drop === 'after' ? truncate : undefined;
  if (drop === 'after' && bytes === undefined) {
    response.destroy();
    return 0;
  }
  if (drip !== undefined) await sendPieces(response, answer, drip, bytes, now);
  else if (bytes !== undefined) sendPart(response, answer, bytes, now);
  else send(response, answer, now);
  return answer.status;
}
