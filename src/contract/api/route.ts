import type { z } from 'zod';
import type { GuardUse } from '../guards.ts';
import type { Reach } from '../scopes.ts';

/** Methods of the API's routes. */
export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE';

/** One route of the API: what the sandbox serves, the client calls and the description says. */
export interface RouteContract {
  method: Method;
  /** Below `{base_url}`, with the specification's placeholders. */
  path: string;
  summary: string;
  /** `specified`: in a table of the specification; `choice`: ours, so that what was sent can be read back. */
  source: 'specified' | 'choice';
  /** `shared` when left out. */
  reach?: Reach;
  /** The JSON body; a route without one ignores what is sent. */
  body?: z.ZodObject;
  /** A list with pages (Pagination): `answer` is one of its items, and `limit` and `page_token` are understood. */
  list?: true;
  /** Status of an answer that is no error; 200 when left out. */
  status?: 201 | 202;
  answer: z.ZodType;
  /** Media type of an answer that is no JSON; `answer` is then a text. */
  mediaType?: 'text/csv';
  /** With `Prefer: respond-async` the answer is 202 and carries `message_uid` in place of the document. */
  async?: true;
  guard?: GuardUse;
  /** A POST that does no harm when it comes twice, as it adds to a set. See {@link isRepeatable}. */
  repeatable?: true;
}

/** Whether a request may come twice: its answer may have been lost. */
export function isRepeatable({ method, repeatable }: RouteContract): boolean {
  return method !== 'POST' || repeatable === true;
}

/** Keeps each route's own types, for the client's and the handlers' sake. */
export function defineRoutes<const T extends Record<string, RouteContract>>(routes: T): T {
  return routes;
}

/** The values of a path's placeholders: `{tag_id: string}` for `/tags/:tag_id`. */
export type PathParams<Path extends string> = Path extends `${string}/:${infer Name}/${infer Rest}`
  ? { [K in Name]: string } & PathParams<`/${Rest}`>
  : Path extends `${string}/:${infer Name}`
    ? { [K in Name]: string }
    : unknown;
