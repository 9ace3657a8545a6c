import type { ServerResponse } from 'node:http';
import type { Answer } from '../http/answer.ts';
import type { Prepared } from '../http/exchange.ts';
import { send, sendPart } from '../http/send.ts';
import { changeRecords } from '../state/change-records.ts';
import type { Fault } from '../types.ts';
import type { World } from '../world.ts';

/** Revokes and changes after the request took effect. API tokens are not revoked: they are no grant. */
export function leaveBehind({ companies, clock }: World, fault: Fault, prepared: Prepared): void {
  const { revoke, records } = fault;
  const { companyId, token, grant } = prepared;
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
  const most = drop === 'after' ? truncate : undefined;
  if (drop === 'after' && most === undefined) {
    response.destroy();
    return 0;
  }
  if (drip === undefined && most === undefined) send(response, answer, now);
  else await sendPart(response, answer, now, most, drip);
  return answer.status;
}
