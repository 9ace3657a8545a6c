import { setImmediate as nextTick } from 'node:timers/promises';
import type { Admission } from '../service/budget.ts';
import { PageChain } from '../service/next-url.ts';
import type { FetchedPage } from '../store/pages.ts';
import type { Run } from '../store/runs.ts';
import { type FetchedListPage, ListRequests, type NoAnswer } from './list-requests.ts';
import type { SliceWork, SyncParts } from './parts.ts';

interface Slice {
  parts: SyncParts;
  work: SliceWork;
  signal: AbortSignal;
  /** Whether the slice is over after so many requests. */
  isOver(requests: number): boolean;
  /** Whether a check is due: then no page may be under way. */
  isCheckDue(): boolean;
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
  /** Its requests, which checks and questions between two pages share. */
  readonly requests: ListRequests;
  readonly #slice: Slice;
  readonly #stopping = new AbortController();
  readonly #chain = new PageChain();
  #run: Run;
  #started = 0;
  #ahead: Promise<FetchedListPage | NoAnswer> | undefined;
  #isWriting = false;

  constructor(slice: Slice, run: Run) {
    this.#slice = slice;
    this.#run = run;
    this.requests = new ListRequests(slice.parts, slice.work, this.#stopping.signal);
    slice.signal.addEventListener('abort', this.#stop);
    if (slice.signal.aborted) this.#stop();
  }

  /** Whether no request is under way. */
  get isIdle(): boolean {
    return this.#ahead === undefined;
  }

  /** Whether the slice is over and no request is under way. */
  get isOver(): boolean {
    return this.isIdle && !this.#mayRequest();
  }

  /**
   * The page at the run's cursor.
   *
   * @param run after the last page
   * @throws ServiceError
   */
  async read(run: Run): Promise<FetchedPage | NoAnswer> {
    this.#run = run;
    this.#isWriting = false;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    const fetched = await (ahead ?? this.#fetch(run.cursor));
    if (!('page' in fetched)) return fetched;
    const { page, admission } = fetched;
    this.#isWriting = true;
    const counts = this.requests.takeCounts();
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

  /** Breaks off the request under way, and waits until all permits are released. */
  async close(): Promise<void> {
    this.#slice.signal.removeEventListener('abort', this.#stop);
    if (this.#ahead === undefined) return;
    this.#stop();
    const ahead = await this.#ahead.catch(() => undefined);
    if (ahead && 'admission' in ahead) await this.requests.release(ahead.admission);
  }

  readonly #stop = (): void => this.#stopping.abort();

  #fetch(cursor: string | null, admission?: Admission, onSentOrWaits = () => {}) {
    this.#started++;
    const wantsMore = () => !this.#isWriting && this.requests.hasToken && this.#mayLookAhead();
    return this.requests.page(cursor, this.#chain, { admission, onSentOrWaits, wantsMore });
  }

  #mayLookAhead(): boolean {
    return this.#run.attempt === 0 && this.#mayRequest() && !this.#slice.isCheckDue();
  }

  #mayRequest(): boolean {
    return !this.#stopping.signal.aborted && !this.#slice.isOver(this.#started);
  }
}
