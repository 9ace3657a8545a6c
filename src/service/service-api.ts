import { HEADER } from '../contract/headers.ts';
import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import { numberText } from '../contract/number-text.ts';
import { IDENTITY_PATH } from '../contract/routes.ts';
import type { Admission, BlockKind, Outcome, Permit, RateBudget } from './budget.ts';
import { refusalOf, ServiceError, unreadable } from './errors.ts';
import { readLimit, readRateHeaders, type ServiceClock } from './headers.ts';
import type { Headers, HttpAnswer, HttpClient, HttpRequest } from './http.ts';
import type { AllowedOrigins, PageAddress } from './next-url.ts';
import { type ListPage, readJson, readListPage } from './page.ts';

interface ServiceApiParts {
  /** `{base_url}`, without a slash at its end. */
  apiUrl: string;
  http: HttpClient;
  clock: ServiceClock;
  budget: RateBudget;
  origins: AllowedOrigins;
  /** Receives every answer (with what refused it, if the status is 429), and status 0 for a request without one. */
  onOutcome?: (outcome: {
    route: string;
    status: number;
    durationMs: number;
    refusedBy?: 'limit' | 'guard';
  }) => void;
}

/** The company behind a token. */
export interface Identity {
  id: string;
  name: string | undefined;
}

/**
 * Sends requests, each under a permit of the budget, and learns the service's time and limits from every answer. Each
 * failure is a {@link ServiceError}.
 */
export class ServiceApi {
  readonly apiUrl: string;
  readonly origins: AllowedOrigins;
  readonly #parts: ServiceApiParts;

  constructor(parts: ServiceApiParts) {
    this.apiUrl = parts.apiUrl;
    this.origins = parts.origins;
    this.#parts = parts;
  }

  /** Asks for a permit. @throws RedisError */
  acquire(company: string, route: string): Promise<Admission> {
    return this.#parts.budget.acquire(company, route);
  }

  /** Releases a permit. Without Redis, its lease runs out. */
  async release(permit: Permit, outcome: Outcome = { unsent: true }): Promise<void> {
    await this.#parts.budget.release(permit, outcome).catch(() => undefined);
  }

  /**
   * The address of a page. Only the first page's carries our limit: the others are as given (Pagination, 1 to 3).
   *
   * @param cursor the `next` of the page before; null for the first page
   * @throws ServiceError to give up on, if the token must not go there
   */
  pageAddress(route: string, cursor: string | null): PageAddress {
    if (cursor !== null) return this.origins.check(cursor);
    return { url: new URL(`${this.apiUrl}${route}?limit=${PAGE_LIMIT_MAX}`) };
  }

  /** Sends a request under a permit, and releases it. @throws ServiceError without an answer, or for a refusal */
  async send(
    request: HttpRequest,
    permit: Permit,
    accessToken: string,
    signal?: AbortSignal,
  ): Promise<HttpAnswer> {
    const { answer, outcome } = await this.#ask(request, permit, accessToken, signal);
    await this.release(permit, outcome);
    return answer;
  }

  /**
   * Reads one page of a list (Pagination), and exchanges its permit for the next page's.
   *
   * @param wantsMore whether to ask for that permit; if it throws, there is no page either
   * @returns the page; and the admission, if it was wanted and Redis answered
   * @throws ServiceError, or what `wantsMore` throws
   */
  async listPage(
    at: PageAddress,
    permit: Permit,
    accessToken: string,
    wantsMore: (next: string) => boolean,
    signal?: AbortSignal,
  ): Promise<{ page: ListPage; admission: Admission | undefined }> {
    const { answer, outcome } = await this.#ask({ method: 'GET', ...at }, permit, accessToken, signal);
    let exchanges = false;
    try {
      const page = readListPage(answer.body);
      exchanges = page.next !== null && wantsMore(page.next);
      const admission = exchanges
        ? await this.#parts.budget.exchange(permit, outcome).catch(() => undefined)
        : undefined;
      return { page, admission };
    } finally {
      if (!exchanges) await this.release(permit, outcome);
    }
  }

  /** Asks for the company of a token again, under a permit. @throws ServiceError */
  async identityUnder(
    permit: Permit,
    accessToken: string,
    signal?: AbortSignal,
  ): Promise<Identity | undefined> {
    const request = { method: 'GET', url: new URL(this.apiUrl + IDENTITY_PATH) } as const;
    return readIdentity((await this.send(request, permit, accessToken, signal)).body);
  }

  /**
   * Asks for the company of a token. This request has no permit, because the company is not known yet.
   *
   * @returns undefined if the service does not say (404, 403, or no id)
   * @throws ServiceError to wait on, for anything else: the install must not make a second instance of a known company
   */
  async identity(accessToken: string): Promise<Identity | undefined> {
    const { apiUrl, clock, budget } = this.#parts;
    const request = { method: 'GET', url: new URL(apiUrl + IDENTITY_PATH) } as const;
    const answer = await this.#sendBare(request, IDENTITY_PATH, accessToken);
    const now = clock.now();
    const failure = refusalOf(answer, now, accessToken);
    if (failure?.status === 404 || failure?.status === 403) return undefined;
    if (failure !== undefined)
      throw new ServiceError(failure.kind, failure.message, { ...failure, remedy: 'wait', cause: failure });
    const company = readIdentity(answer.body);
    const rate = readRateHeaders(answer.headers, now);
    if (company !== undefined && rate !== undefined)
      await budget.observe(company.id, rate).catch(() => undefined);
    return company;
  }

  /** Sends a request. After a good answer the caller releases the permit. */
  async #ask(
    request: HttpRequest,
    permit: Permit,
    accessToken: string,
    signal: AbortSignal | undefined,
  ): Promise<{ answer: HttpAnswer; outcome: Outcome }> {
    let answer: HttpAnswer;
    try {
      // The process may have stood still since it got the permit.
      if (performance.now() > permit.goodUntil) {
        const message = 'The app did not send the request: its permit was too old.';
        throw new ServiceError('unreachable', message, { unsent: true });
      }
      answer = await this.#sendBare(request, permit.route, accessToken, signal);
    } catch (error) {
      await this.release(permit, { unsent: error instanceof ServiceError && error.unsent });
      throw error;
    }
    const now = this.#parts.clock.now();
    const { headers } = answer;
    const failure = refusalOf(answer, now, accessToken);
    const forMs = failure?.retryAfterMs;
    const outcome: Outcome = {
      answered: true,
      refused: failure !== undefined,
      rate: readRateHeaders(headers, now),
      limit: readLimit(headers),
      block: failure && forMs !== undefined ? { forMs, of: blockKind(failure, headers) } : undefined,
    };
    if (failure === undefined) return { answer, outcome };
    await this.release(permit, outcome);
    throw failure;
  }

  async #sendBare(
    request: HttpRequest,
    route: string,
    accessToken: string,
    signal?: AbortSignal,
  ): Promise<HttpAnswer> {
    const { http, clock, onOutcome } = this.#parts;
    const startedAt = performance.now();
    const report = (status: number, refusedBy: 'limit' | 'guard') => {
      const durationMs = performance.now() - startedAt;
      onOutcome?.({ route, status, durationMs, ...(status === 429 && { refusedBy }) });
    };
    try {
      const headers = { ...request.headers, authorization: `Bearer ${accessToken}` };
      const answer = await http.send({ ...request, headers }, signal);
      report(answer.status, isOfGuard(answer.headers) ? 'guard' : 'limit');
      clock.observe(answer.headers.date);
      return answer;
    } catch (error) {
      report(0, 'limit');
      throw error;
    }
  }
}

/** "Avoids further requests to the same guard bucket" (Errors): a guard blocks its bucket, the limit the company. */
function blockKind({ status, remedy }: ServiceError, headers: Headers): BlockKind {
  // Every answer of a guarded route names the guard.
  if (status === 429) return isOfGuard(headers) ? 'bucket' : 'company';
  return remedy === 'wait' ? 'error' : 'request';
}

/** "Only for routes with an additional guard, naming the exceeded limit" (Errors). */
function isOfGuard(headers: Headers): boolean {
  return headers[HEADER.tier] !== undefined;
}

/** The longest id, in UTF-16 units. Ids are parts of keys, and pages show them if there is no name. */
const LONGEST_ID = 1_000;

/** Longer names are cut, in UTF-16 units. */
const LONGEST_NAME = 200;

/** What messages call the answer. */
const WHAT = 'an answer about the company';

function readIdentity(body: string): Identity | undefined {
  const identity = readJson(body, WHAT);
  if (typeof identity !== 'object' || identity === null || Array.isArray(identity))
    throw unreadable(WHAT, 'it is no object');
  const { id, name } = identity as { id?: unknown; name?: unknown };
  if (id === undefined || id === null) return undefined;
  const text = typeof id === 'number' ? integerText(body, id) : id;
  if (typeof text !== 'string' || text === '')
    throw unreadable(WHAT, 'its id is neither a text nor an integer');
  if (text.length > LONGEST_ID) throw unreadable(WHAT, `its id is longer than ${LONGEST_ID} characters`);
  // Bytes that are not UTF-8 become U+FFFD: two companies would become one instance.
  if (!text.isWellFormed() || text.includes('\ufffd')) throw unreadable(WHAT, 'its id is no Unicode text');
  const shown = typeof name === 'string' ? name.trim().slice(0, LONGEST_NAME).toWellFormed() : '';
  return { id: text, name: shown === '' ? undefined : shown };
}

/** All digits of an integer, even if a number cannot hold them. */
function integerText(body: string, id: number): string | undefined {
  const text = Number.isSafeInteger(id) ? String(id) : numberText(body, id);
  return text !== undefined && /^-?\d+$/.test(text) ? text : undefined;
}
