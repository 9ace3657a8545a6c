import { type Company, type CompanySpec, createCompany, type Teammate } from './company.ts';

/** The companies at start: one of a few pages, one of some 40 pages of 100, and one larger than a rate window. */
const AT_START: readonly CompanySpec[] = [
  { name: 'Little Lantern Books', plan: 'starter', addonRpm: 0, contacts: 180, conversations: 120 },
  {
    name: 'Harbour & Finch Travel',
    plan: 'professional',
    addonRpm: 0,
    contacts: 2_400,
    conversations: 1_600,
  },
  { name: 'Meridian Outfitters', plan: 'enterprise', addonRpm: 0, contacts: 9_000, conversations: 6_500 },
];

/** The service's customers, found by id, by teammate and by API token. */
export class Companies {
  readonly #byId = new Map<string, Company>();
  readonly #byTeammate = new Map<string, Company>();
  readonly #byApiToken = new Map<string, Company>();

  constructor() {
    for (const spec of AT_START) this.add(spec);
  }

  /** Adds a company; its records are generated when they are read. */
  add(spec: CompanySpec): Company {
    const company = createCompany(this.#byId.size + 1, spec);
    this.#byId.set(company.id, company);
    for (const teammate of company.teammates) this.#byTeammate.set(teammate.id, company);
    for (const { token } of company.apiTokens) this.#byApiToken.set(token, company);
    return company;
  }

  /** All of them, oldest first. */
  all(): Company[] {
    return [...this.#byId.values()];
  }

  byApiToken(token: string): Company | undefined {
    return this.#byApiToken.get(token);
  }

  /** The teammate with this id and the company, or undefined. */
  findTeammate(id: string): { company: Company; teammate: Teammate } | undefined {
    const company = this.#byTeammate.get(id);
    const teammate = company?.teammates.find((candidate) => candidate.id === id);
    return company && teammate && { company, teammate };
  }
}
