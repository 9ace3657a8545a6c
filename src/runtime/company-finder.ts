import { setTimeout as sleep } from 'node:timers/promises';

interface CompanyFacts {
  company: string;
  /** The path of its page: a worker does not know where browsers reach the app. */
  page: string;
}

/** How long a line waits for the database, in milliseconds. */
const LONGEST_WAIT_MS = 500;

/** A name is asked for again after this time, and one that could not be read sooner, in milliseconds. */
const KNOWN_MS = 10 * 60_000;
const FAILED_MS = 5_000;
const MOST_KNOWN = 20_000;

interface Found {
  facts: CompanyFacts | undefined;
  until: number;
}

/** Finds companies for log lines that name an instance. It knows nothing until it gets `find`. */
export class CompanyFinder {
  find: ((instanceId: string) => Promise<CompanyFacts | undefined>) | undefined;
  readonly #known = new Map<unknown, Found>();
  readonly #asked = new Map<string, Promise<CompanyFacts | undefined>>();

  /** The facts at once if they are known, else a promise of them, which never rejects and ends soon. */
  of(instanceId: unknown): CompanyFacts | Promise<CompanyFacts | undefined> | undefined {
    const known = this.#known.get(instanceId);
    if (known !== undefined && known.until > performance.now()) return known.facts;
    if (typeof instanceId !== 'string' || this.find === undefined) return undefined;
    const asked = this.#asked.get(instanceId) ?? this.#ask(this.find, instanceId);
    this.#asked.set(instanceId, asked);
    return Promise.race([asked, sleep(LONGEST_WAIT_MS, undefined, { ref: false })]);
  }

  async #ask(find: NonNullable<CompanyFinder['find']>, id: string): Promise<CompanyFacts | undefined> {
    let known: Found = { facts: undefined, until: performance.now() + FAILED_MS };
    try {
      known = { facts: await find(id), until: performance.now() + KNOWN_MS };
    } catch {
      // The line matters more than the name.
    }
    if (this.#known.size >= MOST_KNOWN) this.#known.clear();
    this.#known.set(id, known);
    this.#asked.delete(id);
    return known.facts;
  }
}
