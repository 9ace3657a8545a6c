/** What log lines say of a company. */
export interface CompanyFacts {
  company: string;
  /** The path of its page: a worker does not know where browsers reach the app. */
  page: string;
}

/** A name is asked for again after this time, in milliseconds. */
const KNOWN_MS = 10 * 60_000;
const MOST_KNOWN = 20_000;

/** Finds companies for log lines that name an instance. It knows nothing until it gets `find`. */
export class CompanyFinder {
  find: ((instanceId: string) => Promise<CompanyFacts | undefined>) | undefined;
  readonly #known = new Map<unknown, { facts: CompanyFacts | undefined; until: number }>();

  /** The facts at once if they are known, else a promise of them, which never rejects. */
  of(instanceId: unknown): CompanyFacts | Promise<CompanyFacts | undefined> | undefined {
    const known = this.#known.get(instanceId);
    if (known !== undefined && known.until > performance.now()) return known.facts;
    return typeof instanceId === 'string' && this.find ? this.#ask(this.find, instanceId) : undefined;
  }

  async #ask(find: NonNullable<CompanyFinder['find']>, id: string): Promise<CompanyFacts | undefined> {
    const facts = await find(id).catch(() => undefined);
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, { facts, until: performance.now() + KNOWN_MS });
    return facts;
  }
}
