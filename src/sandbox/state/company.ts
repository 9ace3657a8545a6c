import { createHash } from 'node:crypto';
import { PLAN_LIMITS, type Plan } from '../../contract/limits.ts';
import type { Collection } from '../data/collection.ts';
import { contacts } from '../data/contacts.ts';
import { conversations } from '../data/conversations.ts';
import { companyCode, IdSeries } from '../data/ids.ts';
import { personName } from '../data/names.ts';
import { mix32, Random, seedOf } from '../data/random.ts';

/** A person who works at a company; only administrators may authorize an application (Authentication, 3). */
export interface Teammate {
  id: string;
  name: string;
  email: string;
  is_admin: boolean;
}

/** A token that a company made for itself; it counts against the company's own limit. */
export interface ApiToken {
  token: string;
  scopes: readonly string[];
}

/** Something with a name; private things belong to one teammate, out of reach of OAuth tokens (Authentication, 9). */
export interface NamedThing {
  id: string;
  name: string;
  is_private: boolean;
}

/** A knowledge base; in reach of API tokens with its scope alone (Authentication, 9). */
export interface KnowledgeBase {
  id: string;
  name: string;
  locales: readonly string[];
  articles: readonly { id: string; name: string }[];
}

/** A customer company of the service, with all that it owns. */
export interface Company {
  id: string;
  name: string;
  plan: Plan;
  /** Requests a minute bought on top of the plan's. */
  addonRpm: number;
  teammates: readonly Teammate[];
  apiTokens: readonly ApiToken[];
  inboxes: readonly NamedThing[];
  tags: readonly NamedThing[];
  channels: readonly { id: string; name: string }[];
  responses: readonly { id: string; name: string }[];
  knowledgeBases: readonly KnowledgeBase[];
  contacts: Collection;
  conversations: Collection;
}

/** What a company is made of. */
export interface CompanySpec {
  name: string;
  plan: Plan;
  addonRpm: number;
  contacts: number;
  conversations: number;
}

/** The company's own limit in requests a window: its plan's, and what it bought on top (Limits). */
export function planLimit(company: Company): number {
  return PLAN_LIMITS[company.plan] + company.addonRpm;
}

const TEAMMATE_KIND = 3;
const TEAMMATES_MIN = 3;
const SCOPES = ['shared_resources', 'private_resources'] as const;
const KNOWLEDGE_BASE_SCOPE = 'knowledge_base';

/** Looks like a secret, but is always the same, so that it may stand in a script; it opens nothing but the sandbox. */
function apiToken(code: string, number: number): string {
  return `api_${createHash('sha256').update(`${code} ${number}`).digest('base64url')}`;
}

function teammates(seed: number, ids: IdSeries): Teammate[] {
  const random = new Random(seedOf(seed, TEAMMATE_KIND, 0));
  return Array.from({ length: TEAMMATES_MIN + random.int(3) }, (_, index) => {
    const { name, latin } = personName(random, 'latin');
    return { id: ids.id(index), name, email: `${latin}@team.example`, is_admin: index === 0 || index === 3 };
  });
}

/**
 * Makes a company. The same ordinal and spec always give the same ids, people, tokens and records.
 *
 * @param ordinal 1 for the first company of the sandbox, and so on
 */
export function createCompany(ordinal: number, spec: CompanySpec): Company {
  const seed = mix32(ordinal);
  const owner = { code: companyCode(ordinal), seed };
  const series = (prefix: string) => new IdSeries(prefix, owner.code, seed);
  const named = (prefix: string, names: readonly string[]) => {
    const ids = series(prefix);
    return names.map((name, index) => ({ id: ids.id(index), name }));
  };
  const withPrivate = (prefix: string, shared: readonly string[], own: string) =>
    named(prefix, [...shared, own]).map((thing) => ({ ...thing, is_private: thing.name === own }));

  const people = teammates(seed, series('tea'));
  const inboxes = withPrivate('inb', ['Support', 'Sales'], 'My inbox');
  const tags = withPrivate('tag', ['Urgent', 'Refund', 'Waiting for customer', 'Lob 💛'], 'My follow-ups');
  const ownContacts = contacts(owner, spec.contacts);
  return {
    id: `cmp_${owner.code}`,
    name: spec.name,
    plan: spec.plan,
    addonRpm: spec.addonRpm,
    teammates: people,
    apiTokens: [
      { token: apiToken(owner.code, 1), scopes: [...SCOPES, KNOWLEDGE_BASE_SCOPE] },
      { token: apiToken(owner.code, 2), scopes: SCOPES },
    ],
    inboxes,
    tags,
    channels: named('cha', ['Shop chat', 'Parcel tracker']),
    responses: named('rsp', ['Opening hours', 'Delivery takes longer', 'Rücksendung']),
    knowledgeBases: named('knb', ['Help centre']).map((base) => ({
      ...base,
      locales: ['en', 'de'],
      articles: named('kba', ['Getting started', 'Returns and refunds']),
    })),
    contacts: ownContacts,
    conversations: conversations(owner, spec.conversations, {
      contacts: ownContacts,
      teammates: people,
      inboxes: inboxes.filter((inbox) => !inbox.is_private).map(({ id, name }) => ({ id, name })),
      tags: tags.filter((tag) => !tag.is_private).map(({ id, name }) => ({ id, name })),
    }),
  };
}
