import { ROUTES } from '../../contract/api/api.ts';
import type { RouteContract } from '../../contract/api/route.ts';
import { GUARDS, type GuardRule, type GuardUse } from '../../contract/guards.ts';
import { MEASURED } from './measured.ts';
import type { Rule } from './rule.ts';

function limitText({ limit, share, windowMs }: GuardRule): string {
  const much = share === true ? `${limit * 100} % of the rate limit` : String(limit);
  return `${much} in ${windowMs / 1000} s`;
}

function keyText({ by, pool }: GuardUse): string {
  if (by.length === 0) return 'one bucket for all';
  const parts = by.map((part) => part.replace(/^:/, '')).join(' and ');
  return `one bucket for each ${parts}${pool === undefined ? '' : `, shared by ${pool}`}`;
}

function routeRules(operation: string, route: RouteContract): Rule[] {
  const { method, path, summary, source, async, guard } = route;
  const name = `${method} ${path}`;
  const rule = (kind: string, rest: Omit<Rule, 'id' | 'cases'>): Rule => {
    const key = kind === '' ? operation : `${operation} ${kind}`;
    return { id: `route ${key}`, cases: MEASURED[key] ?? [], ...rest };
  };
  return [
    rule('', { section: 'Endpoints: routes', rule: `${name}: ${summary}`, source }),
    ...(async === true
      ? [
          rule('async', {
            section: 'Endpoints: routes',
            rule: `${name}: asynchronously on request`,
            source: 'specified' as const,
          }),
        ]
      : []),
    ...(guard === undefined
      ? []
      : [
          rule('guard', {
            section: 'Limits: guards, route by route',
            rule: `${name}: ${limitText(GUARDS[guard.guard])}, ${keyText(guard)}`,
            source: 'specified' as const,
          }),
        ]),
  ];
}

/** A row for every route of the contract, for its asynchronous form, and for its guard. */
export const ROUTE_RULES: readonly Rule[] = ROUTES.flatMap(([operation, route]) =>
  routeRules(operation, route),
);
