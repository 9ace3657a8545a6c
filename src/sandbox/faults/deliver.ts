import type { ServerResponse } from 'node:http';
import type { Answer } from '../http/answer.ts';
import { send, sendPart, sendPieces } from '../http/send.ts';
import type { Fault } from './fault.ts';

/**
 * Sends a disturbed answer the way that the fault wants it: whole, in small pieces, in part, or not at all.
 *
 * @param now what the `Date` header says, in ms since 1970
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
