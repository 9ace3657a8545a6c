import { setTimeout as sleep, setImmediate as socketsTurn } from 'node:timers/promises';
import type { HeldToken } from '../auth/tokens.ts';
import type { Admission, Permit } from '../service/budget/rate-budget.ts';
import { rejectedAgain, ServiceError } from '../service/errors.ts';
import type { PageAddress } from '../service/next-address.ts';
import { PageChain } from '../service/page-chain.ts';
import type { AnsweredPage } from '../service/service-api.ts';
import { MOST_PERMITS } from '../service/transport.ts';
import type { FetchedPage } from '../store/pages.ts';
import type { Run } from '../store/runs.ts';
import type { SliceContext, SliceWork, SyncParts } from './parts.ts';

/** Waits up to this long are sat out, in milliseconds; longer ones free the worker's slot. */
const SHORT_WAIT_MS = 1_000;

/** Where the answer took longer, in milliseconds, the process may have stood still: it is asked for once more. */
const STOOD_STILL_MS = 500;

/** Why there is no page: the limit grants none until then (milliseconds since 1970), or the run is not ours any more. */
type NoPage = { until: number; isBlocked: boolean } | { isLost: true };

interface Fetched {
  page: AnsweredPage;
  admission: Admission | undefined;
}

/**
 * Reads the pages of a slice, one request ahead of what is written:
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
  #isWriting = false;
  /** Sizes of the pages in memory, in bytes: the one that is written, and the one after it. */
  readonly #kept: number[] = [];
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
    if (this.#isWriting) this.#forget(1);
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
    try {
      return { ...page.read(), ...counts };
    } catch (error) {
      this.#pageError = error;
      throw error;
    }
  }

  /** Whether an error came of asking for a page: neither of its token nor of the app itself. */
  isOfPage(error: unknown): boolean {
    return error instanceof ServiceError && error === this.#pageError;
  }

  /** Breaks off what is under way, and waits until every permit is given back. */
  async close(): Promise<void> {
    this.#context.signal.removeEventListener('abort', this.#breakOff);
    if (this.#ahead !== undefined) {
      this.#breakOff();
      const ahead = await this.#ahead.catch(() => undefined);
      if (ahead && 'admission' in ahead) await this.#decline(ahead.admission);
    }
    this.#forget(this.#kept.length);
    await this.#parts.api.giveBackLate(this.#company, this.#work.resource.route).catch(() => undefined);
  }

  get #company(): string {
    const { instance } = this.#work;
    return instance.company_id ?? instance.id;
  }

  #forget(pages: number): void {
    for (const bytes of this.#kept.splice(0, pages)) this.#parts.memory.give(bytes);
  }

  readonly #breakOff = (): void => this.#broken.abort();

  /** @param admission what the answer before brought */
  async #fetch(
    cursor: string | null,
    admission?: Admission,
    onSentOrWaits = () => {},
  ): Promise<Fetched | NoPage> {
    const { api } = this.#parts;
    this.#asked++;
    let pending = admission;
    try {
      const at = api.pageAddress(this.#work.resource.route, cursor);
      const address = cursor ?? at.url.href;
      let unsent = 0;
      for (let rejected: string | undefined; ; ) {
        const token = await this.#accessToken(rejected);
        const first = pending;
        pending = undefined;
        const permit = await this.#admit(first, onSentOrWaits);
        if ('until' in permit) return permit;
        // Last of all: token and permit may have taken long, and a pause raises the fence.
        if (!(await this.#holds(permit))) return { isLost: true };
        try {
          this.#requests++;
          const answer = this.#ask(at, address, permit, token.text);
          onSentOrWaits();
          return await answer;
        } catch (error) {
          // The process stood still in between, or the connection took its time: another permit.
          if (error instanceof ServiceError && error.permitOver && ++unsent < MOST_PERMITS) continue;
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

  #ask(at: PageAddress, address: string, permit: Permit, accessToken: string): Promise<Fetched> {
    const { api, memory } = this.#parts;
    return api.listPage(
      at,
      permit,
      accessToken,
      {
        wantsMore: () => !this.#isWriting && this.#token?.isDue() === false && this.#mayLookAhead(),
        accept: (answered, bytes) => {
          this.#chain.follow(address, answered.next);
          this.#kept.push(bytes);
          memory.take(bytes);
        },
      },
      this.#broken.signal,
    );
  }

  /** Gives back a permit whose request is not sent. */
  async #decline(admission: Pick<Admission, 'permit'> | undefined): Promise<void> {
    if (admission?.permit !== undefined)
      await this.#parts.api.giveBack(admission.permit).catch(() => undefined);
  }

  /** Whether the claim holds; the permit is given back where it does not, or that cannot be told. */
  async #holds(permit: Permit): Promise<boolean> {
    let holds = false;
    try {
      const startedAt = performance.now();
      holds = await this.#parts.runs.holds(this.#work.claim);
      if (performance.now() - startedAt > STOOD_STILL_MS) {
        holds = await this.#parts.runs.holds(this.#work.claim);
      }
    } finally {
      if (!holds) await this.#decline({ permit });
    }
    return holds;
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
  ): Promise<Permit | { until: number; isBlocked: boolean }> {
    const { api, onSlot } = this.#parts;
    const startedAt = performance.now();
    for (let known = first; ; known = undefined) {
      const admission = known ?? (await api.acquire(this.#company, this.#work.resource.route));
      const waitedMs = performance.now() - startedAt;
      if (admission.permit !== undefined) {
        onSlot?.({ waitMs: waitedMs });
        return admission.permit;
      }
      const { waitMs, why } = admission;
      if (waitMs > SHORT_WAIT_MS) {
        onSlot?.({ waitMs: waitedMs + waitMs });
        return { until: this.#now() + waitMs, isBlocked: why === 'blocked' };
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

  #now(): number {
    return (this.#parts.now ?? Date.now)();
  }
}
