import type { GuardRule } from '../../contract/guards.ts';
import { meansRequest } from '../http/path-pattern.ts';

/** A guard that the specification does not have: a service may add one on any route. Plain data. */
export interface FurtherGuard extends GuardRule {
  /** Routes with the specification's placeholders, or literal paths, that count together; left out: every route. */
  paths?: readonly string[] | undefined;
}

/** Whether a guard is for a request to this path. @param route the route's pattern; undefined when none serves it */
export function isFor({ paths }: FurtherGuard, path: string, route: string | undefined): boolean {
  return paths === undefined || paths.some((wanted) => meansRequest(wanted, path, route));
}
