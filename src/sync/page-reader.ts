import { setTimeout as sleep, setImmediate as socketsTurn } from 'node:timers/promises';
import type { HeldToken } from '../auth/tokens.ts';
import type { Admission, Permit } from '../service/budget.ts';
import { rejectedAgain, ServiceError } from '../service/errors.ts';
import { PageChain } from '../service/next-url.ts';
import type { ListPage } from '../service/page.ts';
import type { FetchedPage } from '../store/pages.ts';
import type { Run } from '../store/runs.ts';
import type { SliceContext, SliceWork, SyncParts } from './parts.ts';

/** Waits up to this long are sat out, in milliseconds; longer ones free the worker's slot. */
const SHORT_WAIT_MS = 1_000;

/** Why there is no page: the limit grants none until then (milliseconds since 1970), or the run is not ours any more. */
type NoPage = { until: number; isBlocked: boolean } | { isLost: true };

interface Fetched {
  page: ListPage;
  admission: Admission | undefined;
}

/**
 * Reads the pages of a slice, one request ahead of the page that is written:
 *
 *     request N ── answer ┬─ request N+1 ────── answer ┬─ request N+2 …
 *                         └─ write page N              └─ write page N+1
 *
 * N+2 waits until page N is written. After a failure nothing is asked for ahead until a page was written.
 */
export class PageReader {
  readonly #parts: SyncParts;
  readonly #work: SliceWork;
  readonly #context: SliceContext;
  readonly #isOver: (asked: number) => boolean;
  readonly #broken = new AbortController();
  readonly #chain = new PageChain();
  #run: Run;
  #asked = 0;
  #ahead: Promise<Fetched | NoPage> | undefined;
  /** Whether a page is written meanwhile. */
  #isWriting = false;
  #token: HeldToken | undefined;
  #requests = 0;
  #refused = 0;
  #pageError: unknown;

  /** @param isOver whether no more is to be asked for, after so many pages */
  constructor(
    parts: SyncParts,
    work: SliceWork,
    run: Run,
    context: SliceContext,
    isOver: (asked: number) => boolean,
  ) {
    this.#parts = parts;
    this.#work = work;
    this.#run = run;
    this.#context = context;
    this.#isOver = isOver;
    context.signal.addEventListener('abort', this.#breakOff);
    if (context.signal.aborted) this.#breakOff();
  }

  /** Whether the slice is over, and nothing is under way any more. */
  get isOver(): boolean {
    return this.#ahead === undefined && !this.#mayAsk();
  }

  /** Requests since the last page was returned, and how many of them were refused with 429. */
  takeCounts(): { requests: number; refused: number } {
    const counts = { requests: this.#requests, refused: this.#refused };
    this.#requests = 0;
    this.#refused = 0;
    return counts;
  }

  /**
   * The page at the run's cursor.
   *
   * @param run as the last page left it
   * @throws ServiceError
   */
  async read(run: Run): Promise<FetchedPage | NoPage> {
    this.#run = run;
    this.#isWriting = false;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    const fetched = await (ahead ?? this.#fetch(run.cursor));
    if (!('page' in fetched)) return fetched;
    const { page, admission } = fetched;
    this.#isWriting = true;
    const counts = this.takeCounts();
    if (admission !== undefined || (page.next !== null && this.#mayLookAhead())) {
      // Parsing and writing keep the event loop: the next request goes first, unless it has to wait.
      const sentOrWaits = Promise.withResolvers<void>();
      this.#ahead = this.#fetch(page.next, admission, sentOrWaits.resolve);
      // What became of it is asked for when its turn comes.
      this.#ahead.catch(() => undefined).finally(sentOrWaits.resolve);
      await sentOrWaits.promise;
      await socketsTurn();
    }
    return { ...page, ...counts };
  }

  /** Whether an error came of asking for a page: neither of its token nor of the app itself. */
  isOfPage(error: unknown): boolean {
    return error instanceof ServiceError && error === this.#pageError;
  }

  /** Breaks off what is under way, and waits until every permit is released. */
  async close(): Promise<void> {
    this.#context.signal.removeEventListener('abort', this.#breakOff);
    if (this.#ahead === undefined) return;
    this.#breakOff();
    const ahead = await this.#ahead.catch(() => undefined);
    if (ahead && 'admission' in ahead) await this.#decline(ahead.admission);
  }

  readonly #breakOff = (): void => this.#broken.abort();

  /** @param admission of the answer before */
  async #fetch(
    cursor: string | null,
    admission?: Admission,
    onSentOrWaits = () => {},
  ): Promise<Fetched | NoPage> {
    const { api, runs } = this.#parts;
    const { resource, claim } = this.#work;
    this.#asked++;
    let pending = admission;
    let rejected: string | undefined;
    try {
      const at = api.pageAddress(resource.route, cursor);
      for (;;) {
        const token = await this.#accessToken(rejected);
        const first = pending;
        pending = undefined;
        const admitted = await this.#admit(first, onSentOrWaits);
        if ('until' in admitted) return admitted;
        pending = admitted;
        // Last of all: token and permit may have taken long, and a pause raises the fence.
        if (!(await runs.holds(claim))) return { isLost: true };
        pending = undefined;
        try {
          this.#requests++;
          const wantsMore = (next: string) => {
            this.#chain.follow(cursor ?? at.url.href, next);
            return !this.#isWriting && this.#token?.isDue() === false && this.#mayLookAhead();
          };
          const signal = this.#broken.signal;
          const answer = api.listPage(at, admitted.permit, token.text, wantsMore, signal);
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
      await this.#decline(pending);
    }
  }

  /** Gives back a permit whose request is not sent. */
  async #decline(admission: Admission | undefined): Promise<void> {
    if (admission?.permit !== undefined) await this.#parts.api.release(admission.permit);
  }

  async #accessToken(rejected: string | undefined): Promise<HeldToken> {
    if (this.#token === undefined || this.#token.isDue() || this.#token.text === rejected) {
      this.#token = await this.#parts.tokens.accessToken(this.#work.instance.id, rejected);
    }
    return this.#token;
  }

  /** @param first an admission that was asked for already */
  async #admit(
    first: Admission | undefined,
    onWait: () => void,
  ): Promise<{ permit: Permit } | { until: number; isBlocked: boolean }> {
    const { api, onSlot, now = Date.now } = this.#parts;
    const { instance, resource } = this.#work;
    const startedAt = performance.now();
    for (let known = first; ; known = undefined) {
      const admission = known ?? (await api.acquire(instance.company_id ?? instance.id, resource.route));
      const waitedMs = performance.now() - startedAt;
      if (admission.permit !== undefined) {
        onSlot?.({ waitMs: waitedMs });
        return admission;
      }
      const { waitMs, why } = admission;
      if (waitMs > SHORT_WAIT_MS) {
        onSlot?.({ waitMs: waitedMs + waitMs });
        return { until: now() + waitMs, isBlocked: why === 'blocked' };
      }
      onWait();
      await sleep(waitMs, undefined, { signal: this.#broken.signal });
    }
  }

  #mayLookAhead(): boolean {
    return this.#run.attempt === 0 && this.#mayAsk();
  }

  #mayAsk(): boolean {
    return !this.#broken.signal.aborted && !this.#isOver(this.#asked);
  }
}
