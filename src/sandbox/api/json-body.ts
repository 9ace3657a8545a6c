import { Problem } from '../http/answer.ts';
import { parseJson } from '../http/body.ts';
import type { Call } from '../http/call.ts';

const BODY_MAX_BYTES = 1024 * 1024;

/** A request's JSON body, or why there is none to work with. */
export type RequestBody = { value: unknown } | { problem: Problem };

/** Reads a request's body as JSON, whatever its content type; an empty one is an empty object. */
export async function readJsonBody(call: Call): Promise<RequestBody> {
  try {
    const body = await call.body(BODY_MAX_BYTES);
    return { value: body.length === 0 ? {} : parseJson(body) };
  } catch (error) {
    if (error instanceof Problem) return { problem: error };
    throw error;
  }
}
