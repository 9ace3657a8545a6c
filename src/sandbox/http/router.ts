import { Problem } from './answer.ts';

/**
 * Matches a path with a pattern of the specification, like `/contacts/:contact_id`: a placeholder stands for one
 * segment that is not empty.
 *
 * @returns the placeholders' decoded values, or undefined when the path does not match
 */
export function matchPath(pattern: string, path: string): Record<string, string> | undefined {
  if (!pattern.includes(':')) return pattern === path ? {} : undefined;
  const wanted = pattern.split('/');
  const given = path.split('/');
  if (wanted.length !== given.length) return undefined;
  const params: Record<string, string> = {};
  for (const [position, segment] of wanted.entries()) {
    const value = given[position] ?? '';
    if (segment.startsWith(':')) {
      const decoded = decode(value);
      if (decoded === '') return undefined;
      params[segment.slice(1)] = decoded;
    } else if (segment !== value) {
      return undefined;
    }
  }
  return params;
}

/**
 * Whether a path or pattern that somebody names means a request: `/conversations/:conversation_id/tags` does not mean
 * `/conversations/search/tags`, which is a search.
 *
 * @param route pattern of the route that serves the request; undefined when there is none
 */
export function meansRequest(pattern: string, path: string, route: string | undefined): boolean {
  if (matchPath(pattern, path) === undefined) return false;
  if (route === undefined || pattern === path) return true;
  // A placeholder of the pattern stands wherever the route has one.
  const wanted = pattern.split('/');
  return route.split('/').every((segment, at) => segment.startsWith(':') || segment === wanted[at]);
}

/** The segment decoded, or as it is where that cannot be done. */
function decode(segment: string): string {
  try {
    return decodeURIComponent(segment);
  } catch {
    return segment;
  }
}

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
