import { Problem } from '../http/answer.ts';
import { mediaType, parseObject } from '../http/call.ts';

/** The parameters of a request; each appears once. */
export type Parameters = ReadonlyMap<string, string>;

function fromEntries(entries: Iterable<[string, unknown]>): Parameters {
  const parameters = new Map<string, string>();
  for (const [name, value] of entries) {
    if (parameters.has(name)) throw new Problem(400, `The parameter ${name} is given more than once.`);
    if (typeof value !== 'string') throw new Problem(400, `The parameter ${name} is not a string.`);
    parameters.set(name, value);
  }
  return parameters;
}

/** The parameters of a form-encoded body. Throws a {@link Problem} (400) when it repeats one. */
export function formParameters(body: Buffer): Parameters {
  return fromEntries(new URLSearchParams(body.toString('utf8')));
}

/**
 * The parameters in a body, form-encoded or JSON (the specification shows no content type).
 * Throws a {@link Problem} (400).
 */
export function bodyParameters(contentType: string | undefined, body: Buffer): Parameters {
  const type = mediaType(contentType);
  if (type === 'application/x-www-form-urlencoded') return formParameters(body);
  if (type === 'application/json') return fromEntries(Object.entries(parseObject(body)));
  throw new Problem(400, 'The body must be application/x-www-form-urlencoded or application/json.');
}
