import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { Problem } from './answer.ts';

/** How many ignored parts of a request the journal names, and how much of each. */
const IGNORED_MAX = { parts: 20, characters: 100 };

/** A request, as the handlers see it. */
export interface Call {
  method: string;
  /** Below the area's address: `/contacts`, `/oauth/token`, `/state`. */
  path: string;
  /** The raw query with its question mark, or empty. */
  search: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** Address of the area, for links: as the client reached it, or below the public address. */
  baseUrl: string;
  /** The body's bytes, once somebody has read them. */
  sent?: Buffer;
  /** The body's bytes. Throws a `Problem` (413) when there are more than `maxBytes`. */
  body(maxBytes: number): Promise<Buffer>;
}

/**
 * A request's target without the origin (which clients of a proxy send along: RFC 9112, section 3.2.2): what stands
 * before and from the question mark.
 */
export function splitTarget(target: string): { path: string; search: string } {
  const local = target.replace(/^https?:\/\/[^/?]*/i, '');
  const mark = local.indexOf('?');
  return mark < 0 ? { path: local, search: '' } : { path: local.slice(0, mark), search: local.slice(mark) };
}

/**
 * @param prefix path of the area, like `/api`
 * @param publicUrl origin for links, where that is not how the client reached the sandbox
 */
export function createCall(request: IncomingMessage, prefix: string, publicUrl: string | undefined): Call {
  const { path, search } = splitTarget(request.url ?? '/');
  const call: Call = {
    method: request.method ?? 'GET',
    path: path.slice(prefix.length),
    search,
    query: new URLSearchParams(search),
    headers: request.headers,
    baseUrl: `${publicUrl ?? `http://${request.headers.host}`}${prefix}`,
    async body(maxBytes) {
      call.sent = await readBody(request, maxBytes);
      return call.sent;
    },
  };
  return call;
}

/** Query parameters or members of a body that the route does not know, as the journal names them. */
export function ignoredParts(kind: string, sent: Iterable<string>, known: readonly string[]): string[] {
  const ignored = [...new Set(sent)].filter((name) => !known.includes(name)).slice(0, IGNORED_MAX.parts);
  return ignored.map((name) => `${kind} ${name}`.slice(0, IGNORED_MAX.characters));
}

/** All bytes of a request's body. Throws a {@link Problem} (413) when there are more than `maxBytes`. */
export async function readBody(
  body: AsyncIterable<Uint8Array> | Iterable<Uint8Array>,
  maxBytes: number,
): Promise<Buffer> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > maxBytes)
      throw new Problem(413, `The body has more than ${maxBytes} bytes.`, { connection: 'close' });
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/** The media type of a `Content-Type` header, in lower case and without parameters. */
export function mediaType(contentType: string | undefined): string {
  return (contentType ?? '').split(';', 1)[0]?.trim().toLowerCase() ?? '';
}

/** The JSON value in a body; an empty one is an empty object. Throws a {@link Problem} (400) when there is none. */
export function parseJson(body: Buffer): unknown {
  try {
    return body.length === 0 ? {} : JSON.parse(body.toString('utf8'));
  } catch {
    throw new Problem(400, 'The body is not valid JSON.');
  }
}

/** The same for a JSON object. */
export function parseObject(body: Buffer): object {
  const value = parseJson(body);
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value;
  throw new Problem(400, 'The body must be a JSON object.');
}
