import { HEADER } from '../contract/headers.ts';
import { PAGE_LIMIT_MAX } from '../contract/limits.ts';
import { numberText } from '../contract/number-text.ts';
import { IDENTITY_PATH } from '../contract/routes.ts';
import type { Admission, BlockKind, Outcome, Permit, RateBudget } from './budget.ts';
import { refusalOf, ServiceError, unreadable } from './errors.ts';
import { readRateHeaders, readToldLimit, type ServiceClock } from './headers.ts';
import type { Headers, HttpAnswer, HttpClient, HttpRequest } from './http.ts';
import type { AllowedOrigins, PageAddress } from './next-url.ts';
import { type ListPage, readJson, readListPage } from './page.ts';

/** What requests are sent with. */
export interface ServiceApiParts {
  /** `{base_url}`, without a slash at its end. */
  apiUrl: string;
  http: HttpClient;
  clock: ServiceClock;
  budget: RateBudget;
  origins: AllowedOrigins;
  /** Told of every answer, and of every request that got none (status 0); of a 429, also what refused it. */
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
 * Sends requests with a token, each under a permit of the budget, and learns from every answer: the service's time, and
 * the rest of its limits. Each failure is a {@link ServiceError}.
 */
export class ServiceApi {
  readonly #parts: ServiceApiParts;

  constructor(parts: ServiceApiParts) {
    this.#parts = parts;
  }

  get apiUrl(): string {
    return this.#parts.apiUrl;
  }

  get origins(): AllowedOrigins {
    return this.#parts.origins;
  }

  /** Asks for the right to call a route on behalf of a company. */
  acquire(company: string, route: string): Promise<Admission> {
    return this.#parts.budget.acquire(company, route);
  }

  /** Releases a permit. Without Redis, its lease ends by itself. */
  async release(permit: Permit, outcome: Outcome = { unsent: true }): Promise<void> {
    await this.#parts.budget.release(permit, outcome).catch(() => undefined);
  }

  /**
   * The address of a page: the first with the largest limit, the others as the page before gave them, which carry
   * the limit already (Pagination, 1 to 3).
   *
   * @param cursor the `next` of the page before, or null for the first page
   * @throws ServiceError to give up on, when the token must not go there
   */
  pageAddress(route: string, cursor: string | null): PageAddress {
    if (cursor !== null) return this.#parts.origins.check(cursor);
    return { url: new URL(`${this.#parts.apiUrl}${route}?limit=${PAGE_LIMIT_MAX}`) };
  }

  /**
   * Sends a request under a permit, and releases the permit.
   *
   * @param signal ends the request early
   * @throws ServiceError when there is no answer, or one that refuses
   */
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
   * Reads one page of a list (Pagination), and exchanges its permit for the next page's where that is wanted.
   *
   * @param wantsMore whether the page that this one leads to is wanted now; if it throws, the page is not taken
   * @returns the page; and the admission, where one was wanted and Redis could be asked
   * @throws ServiceError, or what `wantsMore` throws; the permit is released then
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

  /**
   * Asks which company a token belongs to. Needs no permit, as the company is not known before; the budget learns what the
   * answer says about its limit.
   *
   * @returns undefined when the service does not tell (404, 403, or a whole answer without an id)
   * @throws ServiceError to wait on, when the service cannot be asked, or answers anything else: taken for "does not tell",
   *   trouble would make a company that is known a second instance
   */
  async identity(accessToken: string): Promise<Identity | undefined> {
    const { apiUrl, clock, budget } = this.#parts;
    const request = { method: 'GET', url: new URL(apiUrl + IDENTITY_PATH) } as const;
    const answer = await this.#sendBare(request, IDENTITY_PATH, accessToken);
    const now = clock.now();
    const failure = refusalOf(answer, now, accessToken);
    if (failure !== undefined) {
      const { kind, message, status, retryAfterMs } = failure;
      if (status === 404 || status === 403) return undefined;
      throw new ServiceError(kind, message, { remedy: 'wait', status, retryAfterMs, cause: failure });
    }
    const company = readIdentity(answer.body);
    const rate = readRateHeaders(answer.headers, now);
    if (company !== undefined && rate !== undefined) {
      await budget.observe(company.id, rate).catch(() => undefined);
    }
    return company;
  }

  /** Sends a request whose permit the caller releases if there is a good answer; otherwise it is released here. */
  async #ask(
    request: HttpRequest,
    permit: Permit,
    accessToken: string,
    signal: AbortSignal | undefined,
  ): Promise<{ answer: HttpAnswer; outcome: Outcome }> {
    let answer: HttpAnswer;
    try {
      // The process may have stood still since it asked for the permit.
      if (performance.now() > permit.goodUntil) throw tooOld();
      answer = await this.#sendBare(request, permit.route, accessToken, signal);
    } catch (error) {
      await this.release(permit, { unsent: error instanceof ServiceError && error.unsent });
      throw error;
    }
    const now = this.#parts.clock.now();
    const { headers } = answer;
    const failure = refusalOf(answer, now, accessToken);
    const outcome: Outcome = {
      answered: true,
      refused: failure !== undefined,
      rate: readRateHeaders(headers, now),
      toldLimit: readToldLimit(headers),
      block:
        failure?.retryAfterMs === undefined
          ? undefined
          : { forMs: failure.retryAfterMs, of: blockKind(failure, headers) },
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
    const note = (status: number, refusedBy?: 'limit' | 'guard') =>
      onOutcome?.({
        route,
        status,
        durationMs: performance.now() - startedAt,
        ...(refusedBy && { refusedBy }),
      });
    try {
      const headers = { ...request.headers, authorization: `Bearer ${accessToken}` };
      const answer = await http.send({ ...request, headers }, signal);
      const refusedBy = isGuards(answer.headers) ? 'guard' : 'limit';
      note(answer.status, answer.status === 429 ? refusedBy : undefined);
      clock.observe(answer.headers.date);
      return answer;
    } catch (error) {
      note(0);
      throw error;
    }
  }
}

function tooOld(): ServiceError {
  const message = 'The request was not sent: too much time had passed since its permit was granted.';
  return new ServiceError('unreachable', message, { unsent: true });
}

/** "Avoids further requests to the same guard bucket" (Errors): a guard blocks its bucket, the limit the company. */
function blockKind({ status, remedy }: ServiceError, headers: Headers): BlockKind {
  if (isGuards(headers)) return 'bucket';
  if (status === 429) return 'company';
  return remedy === 'wait' ? 'trouble' : 'request';
}

/** "Only for routes with an additional guard, naming the exceeded limit" (Errors). */
function isGuards(headers: Headers): boolean {
  return headers[HEADER.tier] !== undefined;
}

/** Longer ids are no ids, in UTF-16 units: they stand in keys, and on pages where there is no name. */
const LONGEST_ID = 1_000;

/** As much of a name is kept, in UTF-16 units. */
const LONGEST_NAME = 200;

/** What the answer is called in messages. */
const WHAT = 'an answer about the company';

function readIdentity(body: string): Identity | undefined {
  const identity = readJson(body, WHAT);
  if (typeof identity !== 'object' || identity === null || Array.isArray(identity)) {
    throw unreadable(WHAT, 'it is no object');
  }
  const { id, name } = identity as { id?: unknown; name?: unknown };
  if (id === undefined || id === null) return undefined;
  // An integer may have more digits than a number has room for.
  const digits = typeof id !== 'number' || Number.isSafeInteger(id) ? String(id) : numberText(body, id);
  const text = typeof id === 'number' && /^-?\d+$/.test(digits ?? '') ? digits : id;
  if (typeof text !== 'string' || text === '') {
    throw unreadable(WHAT, 'its id is neither a text nor an integer');
  }
  if (text.length > LONGEST_ID) throw unreadable(WHAT, `its id is longer than ${LONGEST_ID} characters`);
  // Bytes that are not UTF-8 are read as U+FFFD: two companies would become one instance.
  if (!text.isWellFormed() || text.includes('\ufffd')) throw unreadable(WHAT, 'its id is no Unicode text');
  const named = typeof name === 'string' ? name.trim().slice(0, LONGEST_NAME).toWellFormed() : '';
  return { id: text, name: named === '' ? undefined : named };
}
