import { matchPath } from '../http/path-pattern.ts';
import type { FaultMatch, FaultTarget } from './fault.ts';

/**
 * Whether a pattern means this route: a placeholder stands where the route has one, so that
 * `/conversations/:conversation_id/tags` does not mean `/conversations/search/tags`, which is a search.
 */
function meansRoute(pattern: string, route: string): boolean {
  const wanted = pattern.split('/');
  return route.split('/').every((segment, at) => segment.startsWith(':') || segment === wanted[at]);
}

/** Whether a fault is for this request, but for its turn. */
export function matches(match: FaultMatch, target: FaultTarget): boolean {
  const { method, path, company_id, client_id } = match;
  if (method !== undefined && method.toUpperCase() !== target.method) return false;
  if (company_id !== undefined && company_id !== target.companyId) return false;
  if (client_id !== undefined && client_id !== target.application) return false;
  if (path === undefined) return true;
  if (matchPath(path, target.path) === undefined) return false;
  return target.route === undefined || path === target.path || meansRoute(path, target.route);
}
