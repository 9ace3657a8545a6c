import { Problem } from './answer.ts';
import { matchPath } from './path-pattern.ts';

/** One row of a route table: what a route is, and who handles it. */
export interface Route<Handler> {
  method: string;
  /** With the specification's placeholders: `/contacts/:contact_id`. */
  path: string;
  handle: Handler;
}

/** What a request was matched with: the handler, and the values of the path's placeholders. */
export interface Matched<Handler> {
  handle: Handler;
  params: Record<string, string>;
}

/**
 * Finds the route of a request; a HEAD is answered by the route of GET.
 * Throws a {@link Problem}: 404 for a path that there is not, 405 with `Allow` for a method that the path does not have.
 */
export function findRoute<Handler>(
  routes: readonly Route<Handler>[],
  method: string,
  path: string,
): Matched<Handler> {
  const allowed: string[] = [];
  for (const route of routes) {
    const params = matchPath(route.path, path);
    if (params === undefined) continue;
    if (route.method === (method === 'HEAD' ? 'GET' : method)) return { handle: route.handle, params };
    allowed.push(route.method);
  }
  if (allowed.length === 0) throw new Problem(404, `There is no ${path} here.`);
  throw new Problem(405, `${path} takes ${allowed.join(', ')}.`, { allow: allowed.join(', ') });
}
