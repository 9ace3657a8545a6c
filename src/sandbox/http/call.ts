import type { IncomingHttpHeaders, IncomingMessage } from 'node:http';
import { readBody } from './body.ts';

/** A request, as the handlers see it. */
export interface Call {
  method: string;
  /** Below the area's address: `/contacts`, `/oauth/token`, `/state`. */
  path: string;
  /** The raw query with its question mark, or empty. */
  search: string;
  query: URLSearchParams;
  headers: IncomingHttpHeaders;
  /** Address of the area as the client reached it (`http://localhost:4010/api`), for links. */
  baseUrl: string;
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

/** @param prefix path of the area, like `/api` */
export function createCall(request: IncomingMessage, prefix: string): Call {
  const { path, search } = splitTarget(request.url ?? '/');
  return {
    method: request.method ?? 'GET',
    path: path.slice(prefix.length),
    search,
    query: new URLSearchParams(search),
    headers: request.headers,
    baseUrl: `http://${request.headers.host}${prefix}`,
    body: (maxBytes) => readBody(request, maxBytes),
  };
}
