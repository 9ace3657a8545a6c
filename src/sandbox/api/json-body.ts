import { Problem } from '../http/answer.ts';
import { parseJson } from '../http/body.ts';
import type { Call } from '../http/call.ts';

const BODY_MAX_BYTES = 1024 * 1024;

/** What is kept of a body is written again with every list and snapshot, level by level, on the stack. */
const MOST_LEVELS = 500;

/** A request's JSON body, or why there is none to work with. */
export type RequestBody = { value: unknown } | { problem: Problem };

/** Reads a request's body as JSON, whatever its content type; an empty one is an empty object. */
export async function readJsonBody(call: Call): Promise<RequestBody> {
  try {
    const body = await call.body(BODY_MAX_BYTES);
    const value = body.length === 0 ? {} : parseJson(body);
    if (isDeep(value)) throw new Problem(400, `The body has more than ${MOST_LEVELS} levels.`);
    return { value };
  } catch (error) {
    if (error instanceof Problem) return { problem: error };
    throw error;
  }
}

function isDeep(value: unknown): boolean {
  const containers = (values: unknown[]) => values.filter((one) => typeof one === 'object' && one !== null);
  let level = containers([value]);
  for (let depth = 1; level.length > 0; depth++) {
    if (depth > MOST_LEVELS) return true;
    level = containers(level.flatMap((one) => Object.values(one as object)));
  }
  return false;
}
