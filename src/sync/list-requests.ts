import { setTimeout as sleep } from 'node:timers/promises';
import type { HeldToken } from '../auth/tokens.ts';
import { IDENTITY_PATH } from '../contract/routes.ts';
import type { Admission, Permit } from '../service/budget.ts';
import { rejectedAgain, ServiceError } from '../service/errors.ts';
import type { PageChain } from '../service/next-url.ts';
import type { ListPage } from '../service/page.ts';
import type { Identity } from '../service/service-api.ts';
import { type ReadPage, readItems, recordId } from '../store/page-items.ts';
import type { SliceWork, SyncParts } from './parts.ts';

/** A page of a full run waits this long for a permit, in milliseconds. A longer wait gives the worker's slot to others. */
const SHORT_WAIT_MS = 1_000;

/** The reason for no answer: no permit until then (milliseconds since 1970), or the list has another holder. */
export type NoAnswer = { until: number; isBlocked: boolean } | { isLost: true };

/** A page, with the permit for the next one if it was asked for. */
export interface FetchedListPage {
  page: ListPage;
  admission: Admission | undefined;
}

interface FetchOptions {
  /** Came with the page before. */
  admission?: Admission | undefined;
  /** Called once the request is sent or has to wait. */
  onSentOrWaits?: () => void;
  /** Whether to ask for the next page's permit at once. */
  wantsMore?: () => boolean;
  /** The request waits for its permit until then, by `performance.now()`. */
  waitsUntil?: number;
}

/** Sends the requests of one list, each with a token, under a permit, and while the claim holds. */
export class ListRequests {
  readonly #parts: SyncParts;
  readonly #work: SliceWork;
  readonly #signal: AbortSignal;
  #token: HeldToken | undefined;
  #requests = 0;
  #refused = 0;
  #pageError: unknown;

  constructor(parts: SyncParts, work: SliceWork, signal: AbortSignal) {
    this.#parts = parts;
    this.#work = work;
    this.#signal = signal;
  }

  /** Whether the access token is good for another request. */
  get hasToken(): boolean {
    return this.#token?.isDue() === false;
  }

  /** Requests since the last call, and how many of them the service refused with 429. */
  takeCounts(): { requests: number; refused: number } {
    const counts = { requests: this.#requests, refused: this.#refused };
    this.#requests = 0;
    this.#refused = 0;
    return counts;
  }

  /** Whether an error came from a request to the service, not from the token or the app. */
  isOfRequest(error: unknown): boolean {
    return error instanceof ServiceError && error === this.#pageError;
  }

  /**
   * Fetches a page.
   *
   * @param cursor the `next` of the page before; null for the first page
   * @param chain notices pages that lead to each other
   * @throws ServiceError
   */
  async page(
    cursor: string | null,
    chain: PageChain,
    { wantsMore = () => false, ...options }: FetchOptions = {},
  ): Promise<FetchedListPage | NoAnswer> {
    const { api } = this.#parts;
    const at = api.pageAddress(this.#work.resource.route, cursor);
    const follow = (next: string) => {
      chain.follow(cursor ?? at.url.href, next);
      return wantsMore();
    };
    return this.#send(
      this.#work.resource.route,
      (permit, token) => api.listPage(at, permit, token, follow, this.#signal),
      options,
    );
  }

  /**
   * Asks the service for one record.
   *
   * @param id as the copy knows it
   * @returns the record as a page of its own; `gone` if the service has it no more; undefined if the answer proves nothing
   * @throws ServiceError if the service fails
   */
  async record(
    route: string,
    id: string,
    options: FetchOptions,
  ): Promise<ReadPage | 'gone' | undefined | NoAnswer> {
    const { api } = this.#parts;
    const inPath = encodeURIComponent(recordId(id));
    // Dots alone would lead to another path.
    if (/^\.{1,2}$/.test(inPath)) return undefined;
    const url = new URL(api.apiUrl + route.replace(/:\w+/, () => inPath));
    try {
      const answer = await this.#send(
        route,
        (permit, token) => api.send({ method: 'GET', url }, permit, token, this.#signal),
        options,
      );
      if (!('body' in answer)) return answer;
      const read = readItems([answer.body.trim()]);
      return read.items.has(id) ? read : undefined;
    } catch (error) {
      if (!(error instanceof ServiceError) || error.kind !== 'refused') throw error;
      return [403, 404, 410].includes(error.status ?? 0) ? 'gone' : undefined;
    }
  }

  /** Asks the service for the company. @throws ServiceError */
  async identity(): Promise<Identity | undefined | NoAnswer> {
    const { api } = this.#parts;
    return this.#send(IDENTITY_PATH, (permit, token) => api.identityUnder(permit, token, this.#signal), {});
  }

  async release(admission: Admission | undefined): Promise<void> {
    if (admission?.permit !== undefined) await this.#parts.api.release(admission.permit);
  }

  async #send<Answer>(
    route: string,
    request: (permit: Permit, token: string) => Promise<Answer>,
    { admission, onSentOrWaits = () => {}, waitsUntil }: FetchOptions,
  ): Promise<Answer | NoAnswer> {
    let unused = admission;
    let rejected: string | undefined;
    try {
      for (;;) {
        const token = await this.#accessToken(rejected);
        const first = unused;
        unused = undefined;
        const admitted = await this.#admit(route, first, onSentOrWaits, waitsUntil);
        if ('until' in admitted) return admitted;
        unused = admitted;
        // This check comes last: token and permit may take long, and a pause raises the fence meanwhile.
        if (!(await this.#parts.runs.holds(this.#work.claim))) return { isLost: true };
        unused = undefined;
        try {
          this.#requests++;
          const answer = request(admitted.permit, token.text);
          onSentOrWaits();
          return await answer;
        } catch (error) {
          if (error instanceof ServiceError && error.status === 429) this.#refused++;
          const isRejected = error instanceof ServiceError && error.remedy === 'refresh';
          this.#pageError = isRejected ? rejectedAgain(error) : error;
          if (!isRejected || rejected !== undefined) throw this.#pageError;
          rejected = token.text;
        }
      }
    } finally {
      await this.release(unused);
    }
  }

  async #accessToken(rejected: string | undefined): Promise<HeldToken> {
    if (this.#token === undefined || this.#token.isDue() || this.#token.text === rejected) {
      this.#token = await this.#parts.tokens.accessToken(this.#work.instance.id, rejected);
    }
    return this.#token;
  }

  /** @param first an admission that came already */
  async #admit(
    route: string,
    first: Admission | undefined,
    onWait: () => void,
    waitsUntil: number | undefined,
  ): Promise<{ permit: Permit } | { until: number; isBlocked: boolean }> {
    const { api, onSlot, now = Date.now } = this.#parts;
    const { instance } = this.#work;
    const startedAt = performance.now();
    for (let known = first; ; known = undefined) {
      const admission = known ?? (await api.acquire(instance.company_id ?? instance.id, route));
      const waitedMs = performance.now() - startedAt;
      if (admission.permit !== undefined) {
        onSlot?.({ waitMs: waitedMs });
        return admission;
      }
      const { waitMs, why } = admission;
      const isLong =
        waitsUntil === undefined ? waitMs > SHORT_WAIT_MS : performance.now() + waitMs > waitsUntil;
      if (isLong) {
        onSlot?.({ waitMs: waitedMs + waitMs });
        return { until: now() + waitMs, isBlocked: why === 'blocked' };
      }
      onWait();
      await sleep(waitMs, undefined, { signal: this.#signal });
    }
  }
}
