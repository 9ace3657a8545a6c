import { createHash } from 'node:crypto';
import { PLAN_LIMITS, type Plan } from '../../contract/limits.ts';
import { SCOPE, type Scope } from '../../contract/scopes.ts';
import { companyCode } from '../data/ids.ts';
import { mix32 } from '../data/random.ts';
import type { CompanySpec } from '../types.ts';
import { Correspondence } from './correspondence.ts';
import { createTables, type Tables } from './tables.ts';

const CONTACTS_DEFAULT = 100;
const CONVERSATIONS_DEFAULT = 50;

/** A token that a company made for itself; it counts against the company's own limit. */
export interface ApiToken {
  token: string;
  scopes: readonly Scope[];
}

/** A customer company of the service, with all that it owns. */
export interface Company {
  /** What it was made of. */
  spec: CompanySpec;
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

/** The API tokens of every company: one for everything, and one that reaches no knowledge base. */
const API_TOKENS: NonNullable<CompanySpec['api_tokens']> = [
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
 * Throws a `Problem` (400) when two records of a list have the same id.
 *
 * @param ordinal 1 for the first company of the sandbox, and so on
 */
export function createCompany(ordinal: number, spec: CompanySpec): Company {
  const code = companyCode(ordinal);
  const owner = { code, seed: mix32(ordinal) };
  const { contacts = CONTACTS_DEFAULT, conversations = CONVERSATIONS_DEFAULT, api_tokens = [] } = spec;
  const tables = createTables(owner, { contacts, conversations });
  const generated = typeof conversations === 'number' ? conversations : 0;
  const correspondence = new Correspondence(owner, generated);
  if (typeof contacts !== 'number') {
    for (const { id, handles } of tables.contacts.all()) {
      for (const { handle } of handles) correspondence.note(id, 'contact handle', handle.toLowerCase());
    }
  }
  return {
    spec,
    id: spec.id ?? `cmp_${code}`,
    name: spec.name,
    plan: spec.plan,
    addonRpm: spec.addon_rpm ?? 0,
    apiTokens: [...API_TOKENS, ...api_tokens].map(({ token, scopes }, index) => ({
      token: token ?? apiToken(code, index + 1),
      scopes,
    })),
    tables,
    correspondence,
  };
}
