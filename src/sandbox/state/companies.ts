import type { CollectionState } from '../data/collection.ts';
import type { Teammate } from '../data/kinds.ts';
import { Problem } from '../http/answer.ts';
import type { CompanySpec } from '../types.ts';
import { type ApiToken, type Company, createCompany } from './company.ts';
import type { CorrespondenceState } from './correspondence.ts';
import type { Tables } from './tables.ts';

/** The companies at start: one of a few pages, one of some 40 pages of 100, and one larger than a rate window. */
const AT_START: readonly CompanySpec[] = [
  { name: 'Little Lantern Books', plan: 'starter', contacts: 180, conversations: 120 },
  { name: 'Harbour & Finch Travel', plan: 'professional', contacts: 2_400, conversations: 1_600 },
  { name: 'Meridian Outfitters', plan: 'enterprise', contacts: 9_000, conversations: 6_500 },
];

type TablesState = Record<keyof Tables, CollectionState>;

/** A company as it is kept: what it was made of, and what was changed since. */
interface CompanyState {
  spec: CompanySpec;
  tables: TablesState;
  correspondence: CorrespondenceState;
}

/** The service's customers, found by id and by API token. */
export class Companies {
  readonly #byId = new Map<string, Company>();
  readonly #byApiToken = new Map<string, { company: Company; apiToken: ApiToken }>();

  constructor() {
    for (const spec of AT_START) this.add(spec);
  }

  /** Plain data; what is set is taken over, not copied. */
  get state(): CompanyState[] {
    return this.all().map(({ spec, tables, correspondence }) => ({
      spec,
      tables: Object.fromEntries(
        Object.entries(tables).map(([name, { state }]) => [name, state]),
      ) as TablesState,
      correspondence: correspondence.state,
    }));
  }

  set state(companies: CompanyState[]) {
    this.#byId.clear();
    this.#byApiToken.clear();
    for (const { spec, tables, correspondence } of companies) {
      const company = this.add(spec);
      for (const name of Object.keys(tables) as (keyof Tables)[]) company.tables[name].state = tables[name];
      company.correspondence.state = correspondence;
    }
  }

  /**
   * Adds a company; its records are generated when they are read.
   * Throws a {@link Problem} (400) for the id of another company or record, and for the value of another API token.
   */
  add(spec: CompanySpec): Company {
    // As JSON holds it, and nobody changes it later.
    const company = createCompany(this.#byId.size + 1, JSON.parse(JSON.stringify(spec)));
    if (this.#byId.has(company.id)) throw new Problem(400, `id: there is a company ${company.id} already.`);
    const tokens = company.apiTokens.map(({ token }) => token);
    const taken = tokens.find((token, nth) => this.#byApiToken.has(token) || tokens.indexOf(token) < nth);
    if (taken !== undefined) throw new Problem(400, `api_tokens: ${taken} is another API token, too.`);
    this.#byId.set(company.id, company);
    for (const apiToken of company.apiTokens) this.#byApiToken.set(apiToken.token, { company, apiToken });
    return company;
  }

  /** All of them, oldest first. */
  all(): Company[] {
    return [...this.#byId.values()];
  }

  get(id: string): Company | undefined {
    return this.#byId.get(id);
  }

  byApiToken(token: string): { company: Company; apiToken: ApiToken } | undefined {
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
