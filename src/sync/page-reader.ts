import { setTimeout as sleep } from 'node:timers/promises';
import type { HeldToken } from '../auth/tokens.ts';
import type { Admission, Permit } from '../client/budget/rate-budget.ts';
import { rejectedAgain, ServiceError } from '../client/errors.ts';
import type { PageAddress } from '../client/next-address.ts';
import { PageChain } from '../client/page-chain.ts';
import type { AnsweredPage, ReadPage } from '../client/service-api.ts';
import { MOST_PERMITS } from '../client/transport.ts';
import { NewerSchemaError } from '../store/newer-schema.ts';
import type { Run } from '../store/runs.ts';
import { RepeatedPage } from './repeated-page.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/** Waits up to this long are sat out, in milliseconds; longer ones free the worker's place. */
const SHORT_WAIT_MS = 1_000;

/**
 * Why there is no page: the limit grants none until then (milliseconds since 1970), or the service has asked for no
 * request until then; or the run is somebody else's by
 * now, or its instance not active any more.
 */
export type NoPage = { until: number; isBlocked: boolean } | { isLost: true };

type PageRead = { page: AnsweredPage } | NoPage;

type Fetched = { page: AnsweredPage; admission: Admission | undefined } | NoPage;

/**
 * Reads the pages of a slice, one request ahead of what is written:
 *
 *     request N ── answer ┬─ request N+1 ───────────── answer ┬─ request N+2 …
 *                         └─ own logic, write page N          └─ own logic, write page N+1
 *
 * The answer gives its permit back for the next one, so that the next request goes at once. It is the only one under
 * way: N+2 waits until page N is written, and is granted no permit before. After a failure nothing is asked for ahead
 * until a page was written: own logic that fails again and again costs one request a try.
 */
export class PageReader {
  readonly #parts: SyncParts;
  readonly #work: SliceWork;
  readonly #context: SliceContext;
  readonly #isTurnOver: (asked: number) => boolean;
  readonly #broken = new AbortController();
  readonly #chain = new PageChain();
  #run: Run;
  #begun = 0;
  #ahead: Promise<Fetched> | undefined;
  #isWriting = false;
  /** How large the pages are that are kept in memory, in bytes: the one that is written, and the one after it. */
  readonly #kept: number[] = [];
  // For this slice only: another process may renew it, and a disconnect must end its use.
  #token: HeldToken | undefined;
  #pageError: unknown;

  /** @param isTurnOver whether no more is to be asked for, after so many pages */
  constructor(
    parts: SyncParts,
    work: SliceWork,
    run: Run,
    context: SliceContext,
    isTurnOver: (asked: number) => boolean,
  ) {
    this.#parts = parts;
    this.#work = work;
    this.#run = run;
    this.#context = context;
    this.#isTurnOver = isTurnOver;
    context.signal.addEventListener('abort', this.#breakOff);
    if (context.signal.aborted) this.#breakOff();
  }

  /** Whether the turn is over, and nothing is under way any more. */
  get isOver(): boolean {
    return this.#ahead === undefined && !this.#mayAsk();
  }

  /**
   * The page at the run's cursor.
   *
   * @param run as it was left by the last page that was written
   * @throws ServiceError
   */
  async read(run: Run): Promise<PageRead> {
    this.#run = run;
    if (this.#isWriting) this.#forget(1);
    this.#isWriting = false;
    const ahead = this.#ahead;
    this.#ahead = undefined;
    let fetched = await (ahead ?? this.#fetch(run.cursor));
    // Own logic that took its time may have outlasted the wait.
    while ('until' in fetched && fetched.until <= this.#now()) fetched = await this.#fetch(run.cursor);
    if (!('page' in fetched)) return fetched;
    const { page, admission } = fetched;
    this.#isWriting = true;
    if (admission !== undefined || (page.next !== null && this.#mayLookAhead())) {
      this.#ahead = this.#fetch(page.next, admission);
      // What became of it is asked for when its page's turn comes.
      this.#ahead.catch(() => undefined);
    }
    return { page };
  }

  /**
   * What the page holds that {@link read} has brought.
   *
   * @throws ServiceError to wait on, when it is no page after all
   */
  parse(page: AnsweredPage): ReadPage {
    try {
      return page.read();
    } catch (error) {
      this.#pageError = error;
      throw error;
    }
  }

  /** Whether an error is what came of asking for a page: neither of its token nor of the app itself. */
  isOfPage(error: unknown): boolean {
    return error instanceof ServiceError && error === this.#pageError;
  }

  /** Breaks off what is under way, and waits until every permit is given back. */
  async drop(): Promise<void> {
    this.#context.signal.removeEventListener('abort', this.#breakOff);
    if (this.#ahead !== undefined) {
      this.#breakOff();
      await this.#ahead.catch(() => undefined);
    }
    this.#forget(this.#kept.length);
    await this.#parts.api.giveBackLate(this.#company, this.#work.resource.route).catch(() => undefined);
  }

  get #company(): string {
    const { instance } = this.#work;
    return instance.company_id ?? instance.id;
  }

  #forget(pages: number): void {
    for (const bytes of this.#kept.splice(0, pages)) this.#context.gate.written(bytes);
  }

  readonly #breakOff = (): void => this.#broken.abort();

  /** @param admission what the answer before brought, together with a place in the gate */
  async #fetch(cursor: string | null, admission?: Admission): Promise<Fetched> {
    const { api } = this.#parts;
    this.#begun++;
    let pending = admission;
    const repeated = new RepeatedPage();
    try {
      const at = api.pageAddress(this.#work.resource.route, cursor);
      const address = cursor ?? at.url.href;
      let isAskedAgain = false;
      const accept = (page: AnsweredPage, bytes: number) => {
        isAskedAgain = repeated.check(address, page);
        this.#chain.follow(address, page.next);
        this.#kept.push(bytes);
        this.#context.gate.keep(bytes);
      };
      let unsent = 0;
      for (let rejected: string | undefined; ; ) {
        const token = await this.#accessToken(rejected);
        // Its place is given back there from now on, whatever comes.
        const first = pending;
        pending = undefined;
        const permit = await this.#admit(first);
        if ('until' in permit) {
          repeated.end();
          return permit;
        }
        // Nothing is sent for an instance that was disconnected meanwhile; nor told or written, as the store sees to.
        if (!(await this.#isOurs(permit))) return { isLost: true };
        try {
          return await this.#ask(at, permit, token.text, accept);
        } catch (error) {
          // The process stood still in between, or the connection took its time: another one, with another place in the gate.
          if (error instanceof ServiceError && error.permitOver && ++unsent < MOST_PERMITS) continue;
          if (isAskedAgain) {
            isAskedAgain = false;
            continue;
          }
          const isRejected = error instanceof ServiceError && error.remedy === 'refresh';
          this.#pageError = isRejected ? rejectedAgain(error) : error;
          if (!isRejected || rejected !== undefined) throw this.#pageError;
          rejected = token.text;
        }
      }
    } catch (error) {
      if (pending !== undefined) await this.#decline(pending);
      // A process that ends, or whose place a newer version takes, cannot write how a run ends.
      if (!this.#broken.signal.aborted && !(error instanceof NewerSchemaError)) repeated.end(error);
      throw error;
    }
  }

  /** @param permit for the next request: given back when the run is not ours any more, or that cannot be read */
  async #isOurs(permit: Permit): Promise<boolean> {
    let isOurs = false;
    try {
      isOurs = await this.#parts.runs.holds(this.#work.claim);
      return isOurs;
    } finally {
      if (!isOurs) await this.#decline({ permit });
    }
  }

  /** Gives back what was granted for a request that is not sent: the permit, and the place in the gate. */
  async #decline({ permit }: Pick<Admission, 'permit'>): Promise<void> {
    this.#context.gate.leave();
    if (permit !== undefined) await this.#parts.api.giveBack(permit);
  }

  /** Sends the request under a permit and a place in the gate; both are kept for the next page if that is wanted. */
  async #ask(
    at: PageAddress,
    permit: Permit,
    accessToken: string,
    accept: (page: AnsweredPage, bytes: number) => void,
  ): Promise<Fetched> {
    const { gate } = this.#context;
    const { api } = this.#parts;
    let isInside = true;
    const wantsMore = () => {
      gate.leave();
      isInside =
        !this.#isWriting && this.#token?.isDue() === false && this.#mayLookAhead() && gate.tryEnter();
      return isInside;
    };
    try {
      const got = await api.listPage(at, permit, accessToken, { wantsMore, accept }, this.#broken.signal);
      if (got.admission !== undefined) isInside = false;
      return got;
    } finally {
      if (isInside) gate.leave();
    }
  }

  async #accessToken(rejected: string | undefined): Promise<HeldToken> {
    if (this.#token === undefined || this.#token.isDue() || this.#token.text === rejected) {
      this.#token = await this.#parts.tokens.accessToken(this.#work.instance.id, rejected);
    }
    return this.#token;
  }

  /**
   * A permit, with a place in the gate.
   *
   * @param first an admission that was asked for already, with its place
   */
  async #admit(first?: Admission): Promise<Permit | { until: number; isBlocked: boolean }> {
    const { gate, waits } = this.#context;
    const { claim } = this.#work;
    for (let known = first; ; known = undefined) {
      const admission = known ?? (await this.#acquire());
      const now = this.#now();
      if (admission.permit !== undefined) {
        this.#parts.onSlot?.({ waitMs: waits.end(claim, now) });
        return admission.permit;
      }
      gate.leave();
      const until = now + admission.waitMs;
      waits.wait(claim, until, now);
      if (admission.waitMs > SHORT_WAIT_MS) return { until, isBlocked: admission.why === 'blocked' };
      await sleep(admission.waitMs, undefined, { signal: this.#broken.signal });
    }
  }

  async #acquire(): Promise<Admission> {
    const { gate } = this.#context;
    await gate.enter(this.#run.pages, this.#broken.signal);
    try {
      return await this.#parts.api.acquire(this.#company, this.#work.resource.route);
    } catch (error) {
      gate.leave();
      throw error;
    }
  }

  #mayLookAhead(): boolean {
    return this.#run.attempt === 0 && this.#mayAsk();
  }

  #mayAsk(): boolean {
    return !this.#broken.signal.aborted && !this.#isTurnOver(this.#begun);
  }

  #now(): number {
    return (this.#parts.now ?? Date.now)();
  }
}
