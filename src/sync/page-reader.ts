import { setImmediate as nextTick, setTimeout as sleep } from 'node:timers/promises';
import type { HeldToken } from '../auth/tokens.ts';
import type { Admission, Permit } from '../service/budget.ts';
import { rejectedAgain, ServiceError } from '../service/errors.ts';
import { PageChain } from '../service/next-url.ts';
import type { ListPage } from '../service/page.ts';
import type { FetchedPage } from '../store/pages.ts';
import type { Run } from '../store/runs.ts';
import type { SliceWork, SyncParts } from './parts.ts';

/** A slice waits this long for a permit, in milliseconds. A longer wait gives the worker's slot to others. */
const SHORT_WAIT_MS = 1_000;

/** The reason for no page: no permit until then (milliseconds since 1970), or the run has another holder. */
type NoPage = { until: number; isBlocked: boolean } | { isLost: true };

interface Slice {
  parts: SyncParts;
  work: SliceWork;
  signal: AbortSignal;
  /** Whether the slice is over after so many requests. */
  isOver(requests: number): boolean;
}

interface Fetched {
  page: ListPage;
  admission: Admission | undefined;
}

/**
 * Reads the pages of a slice, and sends the next request while a page is written:
 *
 *     request N ── answer ┬─ request N+1 ────── answer ┬─ request N+2 …
 *                         └─ write page N              └─ write page N+1
 *
 * N+2 waits for page N. After a failure the reader sends one request at a time until a page is written.
 */
export class PageReader {
  readonly #slice: Slice;
  readonly #stopping = new AbortController();
  readonly #chain = new PageChain();
  #run: Run;
  #started = 0;
  #ahead: Promise<Fetched | NoPage> | undefined;
  #isWriting = false;
  #token: HeldToken | undefined;
  #requests = 0;
  #refused = 0;
  #pageError: unknown;

  constructor(slice: Slice, run: Run) {
    this.#slice = slice;
    this.#run = run;
    slice.signal.addEventListener('abort', this.#stop);
    if (slice.signal.aborted) this.#stop();
  }

  /** Whether the slice is over and no request is under way. */
  get isOver(): boolean {
    return this.#ahead === undefined && !this.#mayRequest();
  }

  /** Requests since the last page, and how many of them the service refused with 429. */
  takeCounts(): { requests: number; refused: number } {
    const counts = { requests: this.#requests, refused: this.#refused };
    this.#requests = 0;
    this.#refused = 0;
    return counts;
  }

  /**
   * The page at the run's cursor.
   *
   * @param run after the last page
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
      // Parsing and writing block the event loop, so the next request goes first, unless it has to wait.
      const sentOrWaits = Promise.withResolvers<void>();
      this.#ahead = this.#fetch(page.next, admission, sentOrWaits.resolve);
      // The next read reports its errors.
      this.#ahead.catch(() => undefined).finally(sentOrWaits.resolve);
      await sentOrWaits.promise;
      await nextTick();
    }
    return { ...page, ...counts };
  }

  /** Whether an error came from a request for a page, not from the token or the app. */
  isOfPage(error: unknown): boolean {
    return error instanceof ServiceError && error === this.#pageError;
  }

  /** Breaks off the request under way, and waits until all permits are released. */
  async close(): Promise<void> {
    this.#slice.signal.removeEventListener('abort', this.#stop);
    if (this.#ahead === undefined) return;
    this.#stop();
    const ahead = await this.#ahead.catch(() => undefined);
    if (ahead && 'admission' in ahead) await this.#release(ahead.admission);
  }

  readonly #stop = (): void => this.#stopping.abort();

  /** @param admission which the request before brought along */
  async #fetch(
    cursor: string | null,
    admission?: Admission,
    onSentOrWaits = () => {},
  ): Promise<Fetched | NoPage> {
    const { api, runs } = this.#slice.parts;
    const { resource, claim } = this.#slice.work;
    const { signal } = this.#stopping;
    this.#started++;
    let unused = admission;
    let rejected: string | undefined;
    try {
      const at = api.pageAddress(resource.route, cursor);
      for (;;) {
        const token = await this.#accessToken(rejected);
        const first = unused;
        unused = undefined;
        const admitted = await this.#admit(first, onSentOrWaits);
        if ('until' in admitted) return admitted;
        unused = admitted;
        // This check comes last: token and permit may take long, and a pause raises the fence meanwhile.
        if (!(await runs.holds(claim))) return { isLost: true };
        unused = undefined;
        try {
          this.#requests++;
          const wantsMore = (next: string) => {
            this.#chain.follow(cursor ?? at.url.href, next);
            return !this.#isWriting && this.#token?.isDue() === false && this.#mayLookAhead();
          };
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
      await this.#release(unused);
    }
  }

  async #release(admission: Admission | undefined): Promise<void> {
    if (admission?.permit !== undefined) await this.#slice.parts.api.release(admission.permit);
  }

  async #accessToken(rejected: string | undefined): Promise<HeldToken> {
    if (this.#token === undefined || this.#token.isDue() || this.#token.text === rejected) {
      const { parts, work } = this.#slice;
      this.#token = await parts.tokens.accessToken(work.instance.id, rejected);
    }
    return this.#token;
  }

  /** @param first an admission that came already */
  async #admit(
    first: Admission | undefined,
    onWait: () => void,
  ): Promise<{ permit: Permit } | { until: number; isBlocked: boolean }> {
    const { api, onSlot, now = Date.now } = this.#slice.parts;
    const { instance, resource } = this.#slice.work;
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
      await sleep(waitMs, undefined, { signal: this.#stopping.signal });
    }
  }

  #mayLookAhead(): boolean {
    return this.#run.attempt === 0 && this.#mayRequest();
  }

  #mayRequest(): boolean {
    return !this.#stopping.signal.aborted && !this.#slice.isOver(this.#started);
  }
}
