import { AUTHENTICATION_RULES } from './authentication.ts';
import { CHOICE_RULES } from './choices.ts';
import { ERROR_RULES } from './errors.ts';
import { GUARD_RULES } from './guards.ts';
import { LIMIT_RULES } from './limits.ts';
import { OAUTH_RULES } from './oauth.ts';
import { PAGINATION_RULES } from './pagination.ts';
import { RESOURCE_RULES } from './resources.ts';
import { ROUTE_RULES } from './routes.ts';
import type { Rule } from './rule.ts';
import { SERVICE_RULES } from './service.ts';

/** Every rule of the specification, and every choice where it is silent, in its order. */
export const LEDGER: readonly Rule[] = [
  ...SERVICE_RULES,
  ...RESOURCE_RULES,
  ...OAUTH_RULES,
  ...ROUTE_RULES.filter(({ section }) => section === 'Endpoints'),
  ...PAGINATION_RULES,
  ...AUTHENTICATION_RULES,
  ...ERROR_RULES,
  ...LIMIT_RULES,
  ...GUARD_RULES,
  ...ROUTE_RULES.filter(({ section }) => section !== 'Endpoints'),
  ...CHOICE_RULES,
];
