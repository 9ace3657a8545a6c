import { createHash } from 'node:crypto';
import { PLAN_LIMITS, type Plan } from '../../contract/limits.ts';
import { SCOPE, type Scope } from '../../contract/scopes.ts';
import { companyCode } from '../data/ids.ts';
import { mix32 } from '../data/random.ts';
import { Correspondence } from './correspondence.ts';
import { createTables, type Tables } from './tables.ts';

/** A token that a company made for itself; it counts against the company's own limit. */
export interface ApiToken {
  token: string;
  scopes: readonly Scope[];
}

/** A customer company of the service, with all that it owns. */
export interface Company {
  id: string;
  name: string;
  plan: Plan;
  /** Requests a minute bought on top of the plan's. */
  addonRpm: number;
  apiTokens: readonly ApiToken[];
  tables: Tables;
  /** Which messages belong to which conversation, and what other systems call them. */
  correspondence: Correspondence;
}

/** What a company is made of. */
export interface CompanySpec {
  name: string;
  plan: Plan;
  addonRpm: number;
  contacts: number;
  conversations: number;
  /** What API tokens it has beside the two that every company has. */
  apiTokens?: readonly Pick<ApiToken, 'scopes'>[];
}

/** The API tokens of every company: one for everything, and one that reaches no knowledge base. */
const API_TOKENS: readonly Pick<ApiToken, 'scopes'>[] = [
  { scopes: [SCOPE.shared, SCOPE.private, SCOPE.knowledgeBase] },
  { scopes: [SCOPE.shared, SCOPE.private] },
];

/** The company's own limit in requests a window: its plan's, and what it bought on top (Limits). */
export function planLimit(company: Company): number {
  return PLAN_LIMITS[company.plan] + company.addonRpm;
}

/** Looks like a secret, but is always the same, so that it may stand in a script; it opens nothing but the sandbox. */
function apiToken(code: string, number: number): string {
  return `api_${createHash('sha256').update(`${code} ${number}`).digest('base64url')}`;
}

/**
 * Makes a company. The same ordinal and spec always give the same ids, people, tokens and records.
 *
 * @param ordinal 1 for the first company of the sandbox, and so on
 */
export function createCompany(ordinal: number, spec: CompanySpec): Company {
  const code = companyCode(ordinal);
  const owner = { code, seed: mix32(ordinal) };
  return {
    id: `cmp_${code}`,
    name: spec.name,
    plan: spec.plan,
    addonRpm: spec.addonRpm,
    apiTokens: [...API_TOKENS, ...(spec.apiTokens ?? [])].map(({ scopes }, index) => ({
      token: apiToken(code, index + 1),
      scopes,
    })),
    tables: createTables(owner, spec),
    correspondence: new Correspondence(owner, spec.conversations),
  };
}
