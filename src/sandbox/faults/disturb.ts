import { type Answer, bytesOf, errorAnswer } from '../http/answer.ts';
import type { Fault } from './fault.ts';

/** What is answered in place of the route's own answer; undefined when the request shall take effect. */
export function replacement(fault: Fault): Answer | undefined {
  return fault.status === undefined ? undefined : errorAnswer(fault.status, 'This fault was ordered.');
}

function bodyOf(fault: Fault): string {
  return typeof fault.body === 'string' ? fault.body : JSON.stringify(fault.body);
}

function headersOf(answer: Answer, { headers = {} }: Fault): Record<string, string> {
  const all = Object.entries({ ...answer.headers, ...headers });
  return Object.fromEntries(all.filter((field): field is [string, string] => field[1] !== null));
}

/** An answer as the fault wants it. */
export function disturb(answer: Answer, fault: Fault): Answer {
  const body = fault.body === undefined ? answer.body : bodyOf(fault);
  const isWhole = fault.truncate === undefined || fault.drop === 'after';
  return {
    status: answer.status,
    headers: headersOf(answer, fault),
    body: isWhole ? body : bytesOf(body).subarray(0, fault.truncate),
  };
}
