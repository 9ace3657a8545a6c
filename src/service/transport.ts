import { HEADER } from '../contract/headers.ts';
import type { Admission, BlockKind, Permit, RateBudget, Settlement } from './budget/rate-budget.ts';
import { ServiceError } from './errors.ts';
import type { Headers, HttpAnswer, HttpClient, HttpRequest } from './http.ts';
import { CONNECTION_MS } from './late-connection.ts';
import { readRateHeaders, readToldLimit } from './rate-headers.ts';
import { refusalOf } from './refusal.ts';
import type { ServiceClock } from './service-clock.ts';

/**
 * How often in a row a request asks for another permit, see {@link ServiceError.permitOver}, before that counts as trouble:
 * connections that come about late may be closed before they are of use.
 */
export const MOST_PERMITS = 20;

/** What requests are sent with. */
export interface TransportParts {
  http: HttpClient;
  clock: ServiceClock;
  budget: RateBudget;
  /** Told of every answer, and of every request that got none (status 0); of a 429, also what refused it. */
  onOutcome?: (outcome: {
    route: string;
    status: number;
    durationMs: number;
    refusedBy?: 'limit' | 'guard';
  }) => void;
  /** Told what every answer to a request under a permit says is left of the company's limit. */
  onRate?: (rate: { limit: number; remaining: number }) => void;
}

/** Sends requests with a token, and learns from every answer: the service's time, and what is left of its limits. */
export class Transport {
  readonly #parts: TransportParts;

  constructor(parts: TransportParts) {
    this.#parts = parts;
  }

  /**
   * Sends a request under a permit, and gives the permit back.
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
    const { answer, settlement } = await this.#ask(request, permit, accessToken, signal);
    await this.#settle(permit, settlement);
    return answer;
  }

  /**
   * Sends a request under a permit, and gives the permit back: for another one of its kind, in the same call, where one
   * is wanted, and soon otherwise, as {@link RateBudget.settleSoon} does. Redis is asked for it while the answer is read.
   *
   * @param parts `wantsMore` whether a permit is wanted for what a good answer may lead on to; `read` what the answer
   *   says, and whether it does
   * @param signal ends the request early
   * @returns what was read; the admission, if one was wanted, can be used, and Redis could be asked
   * @throws ServiceError when there is no answer, or one that refuses; or what `read` throws. No permit is held then, but
   *   for those seconds.
   */
  async exchange<Read>(
    request: HttpRequest,
    permit: Permit,
    accessToken: string,
    parts: { wantsMore: () => boolean; read: (answer: HttpAnswer) => { read: Read; leadsOn: boolean } },
    signal?: AbortSignal,
  ): Promise<{ read: Read; admission: Admission | undefined }> {
    const { answer, settlement } = await this.#ask(request, permit, accessToken, signal);
    const settled: Promise<Admission | undefined> = parts.wantsMore()
      ? this.#parts.budget.exchange(permit, settlement).catch(nothing)
      : this.#parts.budget.settleSoon(permit, settlement).then(nothing, nothing);
    let got: { read: Read; leadsOn: boolean } | undefined;
    try {
      got = parts.read(answer);
      return { read: got.read, admission: got.leadsOn ? await settled : undefined };
    } finally {
      const unused = got?.leadsOn ? undefined : await settled;
      if (unused?.permit !== undefined) await this.#settle(unused.permit, { unsent: true });
    }
  }

  /** Sends a request whose permit is given back by the caller if there is a good answer, else here. */
  async #ask(
    request: HttpRequest,
    permit: Permit,
    accessToken: string,
    signal: AbortSignal | undefined,
  ): Promise<{ answer: HttpAnswer; settlement: Settlement }> {
    // The process may have stood still since the permit was asked for. Nothing is awaited from here to the connection.
    const now = performance.now();
    if (now > permit.goodUntil) {
      await this.#settle(permit, { unsent: true });
      throw permitOver();
    }
    let answer: HttpAnswer;
    try {
      const connectedBy = now + CONNECTION_MS;
      answer = await this.sendBare({ ...request, connectedBy }, permit.route, accessToken, signal);
    } catch (error) {
      await this.#settle(permit, { unsent: error instanceof ServiceError && error.unsent });
      throw error;
    }
    const answeredAt = this.#parts.clock.now();
    const failure = refusalOf(answer, answeredAt);
    const rate = readRateHeaders(answer.headers, answeredAt);
    if (rate !== undefined) this.#parts.onRate?.(rate);
    const settlement = {
      answer: {
        rate,
        toldLimit: rate?.limit ?? readToldLimit(answer.headers),
        isRefusal: failure !== undefined,
      },
      ...blockOf(failure, answer.headers),
    };
    if (failure === undefined) return { answer, settlement };
    await this.#settle(permit, settlement);
    throw failure;
  }

  /**
   * Sends a request without a permit: whose limit it counts against is not known yet.
   *
   * @param route names it in the outcome
   * @returns the answer, whatever its status
   */
  async sendBare(
    request: HttpRequest,
    route: string,
    accessToken: string,
    signal?: AbortSignal,
  ): Promise<HttpAnswer> {
    const startedAt = performance.now();
    let status = 0;
    let refused = {};
    let isOutcome = true;
    try {
      const headers = { ...request.headers, authorization: `Bearer ${accessToken}` };
      const answer = await this.#parts.http.send({ ...request, headers }, signal);
      status = answer.status;
      if (status === 429) refused = { refusedBy: isGuards(answer.headers) ? 'guard' : 'limit' };
      this.#parts.clock.observe(answer.headers.date);
      return answer;
    } catch (error) {
      // It is sent under another permit.
      isOutcome = !(error instanceof ServiceError && error.permitOver);
      throw error;
    } finally {
      const durationMs = performance.now() - startedAt;
      if (isOutcome) this.#parts.onOutcome?.({ route, status, durationMs, ...refused });
    }
  }

  /** What the service has answered stands, whether or not Redis hears of it: the permit's lease ends by itself. */
  async #settle(permit: Permit, settlement: Settlement): Promise<void> {
    await this.#parts.budget.settle(permit, settlement).catch(nothing);
  }
}

const nothing = () => undefined;

function permitOver(): ServiceError {
  const message = 'The request was not sent: too much time had passed since its permit was granted.';
  return new ServiceError('wait', message, { unsent: true, permitOver: true });
}

function blockOf(failure: ServiceError | undefined, headers: Headers): Pick<Settlement, 'block'> {
  if (failure?.retryAfterMs === undefined) return {};
  return { block: { forMs: failure.retryAfterMs, of: blockKind(failure, headers) } };
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
