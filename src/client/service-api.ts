import { HEADER } from '../contract/headers.ts';
import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import { IDENTITY_PATH } from '../contract/routes.ts';
import type { Permit, RateBudget } from './budget/rate-budget.ts';
import type { ServiceError } from './errors.ts';
import type { Headers, HttpAnswer, HttpClient } from './http.ts';
import { type Identity, readIdentity } from './identity.ts';
import { type ListPage, readListPage } from './list-page.ts';
import type { AllowedOrigins } from './next-address.ts';
import { readRateHeaders } from './rate-headers.ts';
import { refusalOf } from './refusal.ts';
import type { ServiceClock } from './service-clock.ts';

/** What the API client works with. */
export interface ServiceApiParts {
  /** `{base_url}`, without a slash at its end. */
  apiUrl: string;
  http: HttpClient;
  clock: ServiceClock;
  budget: RateBudget;
  origins: AllowedOrigins;
  /** Told of every answer, and of every request that got none (status 0). */
  onOutcome?: (outcome: { route: string; status: number; durationMs: number }) => void;
}

/** Talking to the API of the service: each request under a permit of the budget, each failure a {@link ServiceError}. */
export class ServiceApi {
  readonly #parts: ServiceApiParts;

  constructor(parts: ServiceApiParts) {
    this.#parts = parts;
  }

  /** Asks for the right to call a route on behalf of a company. */
  acquire(company: string, route: string) {
    return this.#parts.budget.acquire(company, route);
  }

  /**
   * The address of a page: the first with the largest limit, the others as the page before gave them, which carry
   * the limit already (Pagination, 1 to 3).
   *
   * @param cursor the `next` of the page before, or null for the first page
   * @throws ServiceError to give up on, when the token must not go there
   */
  pageAddress(route: string, cursor: string | null): URL {
    if (cursor !== null) return this.#parts.origins.check(cursor);
    return new URL(`${this.#parts.apiUrl}${route}?limit=${PAGE_LIMIT_MAX}`);
  }

  /**
   * Reads one page of a list (Pagination).
   *
   * @param signal ends the request early
   * @throws ServiceError
   */
  async listPage(url: URL, permit: Permit, accessToken: string, signal?: AbortSignal): Promise<ListPage> {
    const answer = await this.#send(url, permit, accessToken, signal);
    return readListPage(answer.body);
  }

  /**
   * Asks which company a token belongs to. Needs no permit, as the company is not known before; what the answer
   * says about its limit goes into the budget.
   *
   * @returns undefined when the service does not tell (404, 403, or an answer without an id)
   * @throws ServiceError when it cannot be asked
   */
  async identity(accessToken: string): Promise<Identity | undefined> {
    const answer = await this.#get(new URL(this.#parts.apiUrl + IDENTITY_PATH), IDENTITY_PATH, accessToken);
    const now = this.#parts.clock.now();
    const failure = refusalOf(answer, now);
    if (failure !== undefined) {
      if (failure.remedy === 'give_up') return undefined;
      throw failure;
    }
    const identity = readIdentity(answer.body);
    const rate = readRateHeaders(answer.headers, now);
    if (identity !== undefined && rate !== undefined) await this.#parts.budget.observe(identity.id, rate);
    return identity;
  }

  async #send(url: URL, permit: Permit, accessToken: string, signal?: AbortSignal): Promise<HttpAnswer> {
    const { budget, clock } = this.#parts;
    let answer: HttpAnswer;
    try {
      answer = await this.#get(url, permit.route, accessToken, signal);
    } catch (error) {
      await budget.settle(permit, {});
      throw error;
    }
    const failure = refusalOf(answer, clock.now());
    await budget.settle(permit, {
      answer: { rate: readRateHeaders(answer.headers, clock.now()) },
      ...blockOf(failure, answer.headers),
    });
    if (failure !== undefined) throw failure;
    return answer;
  }

  async #get(url: URL, route: string, accessToken: string, signal?: AbortSignal): Promise<HttpAnswer> {
    const startedAt = performance.now();
    let status = 0;
    try {
      const answer = await this.#parts.http.get(url, { authorization: `Bearer ${accessToken}` }, signal);
      status = answer.status;
      this.#parts.clock.observe(answer.headers.date);
      return answer;
    } finally {
      this.#parts.onOutcome?.({ route, status, durationMs: performance.now() - startedAt });
    }
  }
}

/** "Avoids further requests to the same guard bucket" (Errors): a guard blocks its route, the limit the company. */
function blockOf(failure: ServiceError | undefined, headers: Headers) {
  if (failure?.retryAfterMs === undefined) return {};
  return { block: { forMs: failure.retryAfterMs, bucketOnly: headers[HEADER.tier] !== undefined } };
}
