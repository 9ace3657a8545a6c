import { createHash } from 'node:crypto';
import { SCOPE, type Scope } from '../../contract/scopes.ts';
import { companyCode } from '../data/ids.ts';
import { mix32 } from '../data/random.ts';
import type { Teammate } from '../data/record.ts';
import { Problem } from '../http/answer.ts';
import type { CompanySpec, ListOrder, Company as ShownCompany } from '../types.ts';
import { Correspondence } from './correspondence.ts';
import { createTables, type Tables } from './tables.ts';

/** The companies at start: one of a few pages, one of some 40 pages of 100, and one larger than a rate window. */
const AT_START: readonly CompanySpec[] = [
  { name: 'Little Lantern Books', plan: 'starter', contacts: 180, conversations: 120 },
  { name: 'Harbour & Finch Travel', plan: 'professional', contacts: 2_400, conversations: 1_600 },
  { name: 'Meridian Outfitters', plan: 'enterprise', contacts: 9_000, conversations: 6_500 },
];

/** The API tokens of every company: one for everything, and one that reaches no knowledge base. */
const API_TOKENS: NonNullable<CompanySpec['api_tokens']> = [
  { scopes: [SCOPE.shared, SCOPE.private, SCOPE.knowledgeBase] },
  { scopes: [SCOPE.shared, SCOPE.private] },
];

/** A company with everything that it owns. */
export interface Company
  extends Pick<ShownCompany, 'id' | 'name' | 'plan' | 'addon_rpm' | 'order' | 'api_tokens'> {
  /** The spec that made it. */
  spec: CompanySpec;
  tables: Tables;
  /** Messages of conversations, and references of other systems. */
  correspondence: Correspondence;
}

/** Looks like a secret, but is always the same, so that scripts can contain it. It opens nothing but the sandbox. */
function apiToken(code: string, number: number): string {
  return `api_${createHash('sha256').update(`${code} ${number}`).digest('base64url')}`;
}

/**
 * Makes a company. The same ordinal and spec always give the same ids, people, tokens and records.
 * Throws a `Problem` (400) when two records of a list have the same id.
 *
 * @param ordinal 1 for the first company of the sandbox, and so on
 */
function createCompany(ordinal: number, spec: CompanySpec & { order: ListOrder }): Company {
  const code = companyCode(ordinal);
  const owner = { code, seed: mix32(ordinal) };
  const { id = `cmp_${code}`, name, plan, addon_rpm = 0, order } = spec;
  const { api_tokens: more = [] } = spec;
  const tables = createTables(owner, spec);
  const isGenerated = typeof spec.conversations !== 'object';
  const correspondence = new Correspondence(owner, isGenerated ? tables.conversations.count : 0);
  if (typeof spec.contacts === 'object') {
    for (const { id, handles } of tables.contacts.all()) {
      for (const { handle } of handles) correspondence.note(id, 'contact handle', handle.toLowerCase());
    }
  }
  if (!isGenerated) {
    for (const { id, conversation_id } of tables.messages.all()) {
      correspondence.addMessage(conversation_id, id);
    }
  }
  const api_tokens = [...API_TOKENS, ...more].map(({ token, scopes }, index) => ({
    token: token ?? apiToken(code, index + 1),
    scopes,
  }));
  return { spec, id, name, plan, addon_rpm, order, api_tokens, tables, correspondence };
}

/** The service's customers, found by id and by API token. */
export class Companies {
  readonly #byId = new Map<string, Company>();
  readonly #byApiToken = new Map<string, { company: Company; scopes: readonly Scope[] }>();

  readonly #order: ListOrder;

  /** @param order for companies that name none */
  constructor(order: ListOrder) {
    this.#order = order;
    for (const spec of AT_START) this.add(spec);
  }

  /** The spec of each company and its changes: plain data. A set value is taken over, not copied. */
  get state() {
    return this.all().map(({ spec, tables, correspondence }) => ({
      spec,
      tables: new Map(Object.entries(tables).map(([name, { state }]) => [name, state])),
      correspondence: correspondence.state,
    }));
  }

  set state(companies) {
    this.#byId.clear();
    this.#byApiToken.clear();
    for (const { spec, tables, correspondence } of companies) {
      const company = this.add(spec);
      for (const [name, table] of Object.entries(company.tables)) {
        table.state = tables.get(name) ?? table.state;
      }
      company.correspondence.state = correspondence;
    }
  }

  /**
   * Adds a company; its records are generated when a client reads them. Throws a {@link Problem} (400) for an id or
   * API token in use.
   */
  add(spec: CompanySpec): Company {
    let ordinal = this.#byId.size + 1;
    // The id that would be given out may have been chosen for another one.
    while (spec.id === undefined && this.#byId.has(`cmp_${companyCode(ordinal)}`)) ordinal += 1;
    // As JSON holds it, and nobody changes it later.
    const company = createCompany(ordinal, { order: this.#order, ...JSON.parse(JSON.stringify(spec)) });
    if (this.#byId.has(company.id)) throw new Problem(400, `id: there is a company ${company.id} already.`);
    const tokens = company.api_tokens.map(({ token }) => token);
    const taken = tokens.find((token, nth) => this.#byApiToken.has(token) || tokens.indexOf(token) < nth);
    if (taken !== undefined) throw new Problem(400, `api_tokens: ${taken} is another API token, too.`);
    const chosen = spec.teammates === undefined ? [] : company.tables.teammates.all();
    const known = chosen.find(({ id }) => this.findTeammate(id) !== undefined);
    if (known !== undefined) throw new Problem(400, `teammates: ${known.id} is one of another company.`);
    this.#byId.set(company.id, company);
    for (const { token, scopes } of company.api_tokens) this.#byApiToken.set(token, { company, scopes });
    return company;
  }

  /** All of them, oldest first. */
  all(): Company[] {
    return [...this.#byId.values()];
  }

  get(id: string): Company | undefined {
    return this.#byId.get(id);
  }

  byApiToken(token: string): { company: Company; scopes: readonly Scope[] } | undefined {
    return this.#byApiToken.get(token);
  }

  /** The teammate with this id and the company, or undefined. */
  findTeammate(id: string): { company: Company; teammate: Teammate } | undefined {
    for (const company of this.#byId.values()) {
      const teammate = company.tables.teammates.find(id);
      if (teammate !== undefined) return { company, teammate };
    }
    return undefined;
  }
}
