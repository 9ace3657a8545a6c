import { mediaType } from '../http/call.ts';

/** The parameters of a request, each of which stands there once. */
export type Parameters = ReadonlyMap<string, string>;

function fromEntries(entries: Iterable<[string, unknown]>): Parameters | string {
  const parameters = new Map<string, string>();
  for (const [name, value] of entries) {
    if (parameters.has(name)) return `The parameter ${name} is given more than once.`;
    if (typeof value !== 'string') return `The parameter ${name} is not a string.`;
    parameters.set(name, value);
  }
  return parameters;
}

/** The parameters of a form-encoded body or query, or what is wrong with them. */
export function formParameters(text: string): Parameters | string {
  return fromEntries(new URLSearchParams(text));
}

function jsonParameters(text: string): Parameters | string {
  try {
    const value: unknown = JSON.parse(text);
    if (typeof value === 'object' && value !== null && !Array.isArray(value)) {
      return fromEntries(Object.entries(value));
    }
  } catch {
    // Not JSON: said below, as for JSON that is no object.
  }
  return 'The body is not a JSON object.';
}

/** The parameters in a body, form-encoded or JSON (the specification shows no content type), or what is wrong. */
export function bodyParameters(contentType: string | undefined, body: string): Parameters | string {
  switch (mediaType(contentType)) {
    case 'application/x-www-form-urlencoded':
      return formParameters(body);
    case 'application/json':
      return jsonParameters(body);
    default:
      return 'The body must be application/x-www-form-urlencoded or application/json.';
  }
}
