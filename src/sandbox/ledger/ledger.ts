import { AUTHENTICATION_RULES } from './authentication.ts';
import { ERROR_RULES } from './errors.ts';
import { GUARD_RULES } from './guards.ts';
import { LIMIT_RULES } from './limits.ts';
import { OAUTH_RULES } from './oauth.ts';
import { PAGINATION_RULES } from './pagination.ts';
import { PROTOCOL_CHOICES } from './protocol-choices.ts';
import { RESOURCE_CHOICES } from './resource-choices.ts';
import { RESOURCE_RULES } from './resources.ts';
import { ROUTE_RULES } from './routes.ts';
import { type Rule, SECTIONS } from './rule.ts';
import { SERVICE_RULES } from './service.ts';

const RULES: readonly Rule[] = [
  ...SERVICE_RULES,
  ...RESOURCE_RULES,
  ...OAUTH_RULES,
  ...ROUTE_RULES,
  ...PAGINATION_RULES,
  ...AUTHENTICATION_RULES,
  ...ERROR_RULES,
  ...LIMIT_RULES,
  ...GUARD_RULES,
  ...PROTOCOL_CHOICES,
  ...RESOURCE_CHOICES,
];

/** Every rule of the specification, in its order, and every choice where it is silent. */
export const LEDGER: readonly Rule[] = SECTIONS.flatMap((name) =>
  RULES.filter(({ section }) => section === name),
);
