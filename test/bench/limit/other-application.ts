import { Agent, request } from 'undici';
import type { BenchCompany, BenchSandbox, Credentials } from '../support/bench-sandbox.ts';

/** Many at once: the sandbox counts a request when it arrives, and holds its answer back. */
const CONNECTIONS = 180;

/** Another partner application, which shares the limit of the companies that it is installed at. */
export class OtherApplication {
  readonly #sandbox: BenchSandbox;
  readonly #application: Credentials;
  readonly #agent = new Agent({ connections: CONNECTIONS, pipelining: 1 });
  readonly #tokens = new Map<string, string>();
  readonly #quietUntil = new Map<string, number>();
  #timer: NodeJS.Timeout | undefined;

  private constructor(sandbox: BenchSandbox, application: Credentials) {
    this.#sandbox = sandbox;
    this.#application = application;
  }

  static async register(sandbox: BenchSandbox): Promise<OtherApplication> {
    return new OtherApplication(sandbox, await sandbox.addApplication('Another application'));
  }

  get clientId(): string {
    return this.#application.client_id;
  }

  async install(company: BenchCompany): Promise<void> {
    const { accessToken } = await this.#sandbox.authorize(company, this.#application);
    this.#tokens.set(company.id, accessToken);
  }

  /** Sends so many requests at once. Throws when the service refuses one. */
  async spend(companyId: string, count: number): Promise<void> {
    const statuses = await Promise.all(Array.from({ length: count }, () => this.#ask(companyId)));
    if (statuses.some((status) => status !== 200)) throw new Error(`not spent: ${new Set(statuses)}`);
  }

  /** From now on one request to each company every so often, but for those that the service wants none of. */
  sendEvery(ms: number): void {
    this.#timer = setInterval(() => {
      for (const companyId of this.#tokens.keys()) {
        if ((this.#quietUntil.get(companyId) ?? 0) <= Date.now()) void this.#ask(companyId);
      }
    }, ms);
  }

  async end(): Promise<void> {
    clearInterval(this.#timer);
    await this.#agent.destroy();
  }

  async #ask(companyId: string): Promise<number> {
    try {
      const { statusCode, headers, body } = await request(`${this.#sandbox.up.apiUrl}/me`, {
        headers: { authorization: `Bearer ${this.#tokens.get(companyId)}` },
        dispatcher: this.#agent,
      });
      await body.dump();
      if (statusCode === 429) {
        this.#quietUntil.set(companyId, Date.now() + Number(headers['retry-after']) * 1_000);
      }
      return statusCode;
    } catch {
      // The bench is over.
      return 0;
    }
  }
}
