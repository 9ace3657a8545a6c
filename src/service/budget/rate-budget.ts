import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import type { Redis } from 'ioredis';
import { PARTNER_LIMIT, WINDOW_MS } from '../../contract/limits.ts';
import { REQUEST_TIMEOUT_MS } from '../http.ts';
import type { RateHeaders } from '../rate-headers.ts';
import type { Bucket } from './bucket.ts';
import { CountWatch } from './count-watch.ts';
import { LateSettlements } from './late-settlements.ts';
import { NO_SETTLEMENT, settlementArguments } from './settlement-arguments.ts';

/** How long a request may begin under a permit, in milliseconds: a process may stand still before it sends it. */
const GOOD_FOR_MS = 5_000;

/** How long a permit counts as in flight when its holder never comes back, in milliseconds: until any request is over. */
const LEASE_MS = GOOD_FOR_MS + REQUEST_TIMEOUT_MS;

/**
 * Permits of a window that the sync leaves to what a person waits for: an install asks whose token it is before
 * anything is known of the company, so without a permit. The sync takes them, too, three seconds before the window's
 * end however long that is: our moment of it may be two seconds late, as whole seconds hide so much of the truth.
 */
const KEPT_FOR_PEOPLE = 2;

/**
 * Of a window, the share that calls of the handler leave to the sync, until the same three seconds before its end:
 * hundreds of them may wait for the next window, and would have all of it before a page is asked for.
 */
export const LEFT_TO_SYNC = 0.1;

/** How soon to ask again where what was granted is not used, as it rests on a count with a gap, in milliseconds. */
const GAP_PAUSE_MS = 50;

/** The right to send one request now. It must be settled, whatever becomes of the request. */
export interface Permit {
  id: string;
  company: string;
  /** The route that is called, with the specification's placeholders. */
  route: string;
  /** Where the route's guard counts the request; absent where we know of no guard. */
  bucket?: Bucket;
  /** Nothing was known of the window when it was granted: others wait for what its answer tells. */
  isProbe?: true;
  /**
   * Until when its request may begin, by `performance.now()`. Later on its lease could end while the request is on its
   * way, or has ended: others may have had what it stood for.
   */
  goodUntil: number;
}

/**
 * What a service that wants no requests means: none of the company; none in this bucket (on this route), as its guard
 * refused, or for what was asked; or none of whatever is in trouble, which may be this route or all of the service.
 */
export type BlockKind = 'company' | 'bucket' | 'request' | 'trouble';

/** What became of a request. */
export interface Settlement {
  /**
   * There was an answer; with the limit's headers if it carried them, or with the limit alone if that is all that makes
   * sense; and whether it was no success. Absent: there was none.
   */
  answer?: { rate: RateHeaders | undefined; toldLimit?: number | undefined; isRefusal?: boolean };
  /** There was none, and the request has surely not come to the service: it counts nowhere. */
  unsent?: boolean;
  /** The service wants no requests for so many milliseconds. */
  block?: { forMs: number; of: BlockKind };
  /** How long ago the answer came, in milliseconds. */
  lateByMs?: number;
}

/** What a request has to wait for. */
export type WaitReason = 'limit' | 'shared' | 'pace' | 'blocked' | 'probe' | 'guard';

/** A permit, or how long to wait for one and for what. */
export type Admission = { permit: Permit } | { permit: undefined; waitMs: number; why: WaitReason };

/** What the budget knows of a company, times in milliseconds since 1970 by Redis' clock. */
export interface BudgetState {
  limit: number | undefined;
  /** Requests left in the window that is under way; undefined when nothing is known about it. */
  remaining: number | undefined;
  resetAt: number | undefined;
  burstRemaining: number | undefined;
  blockedUntil: number | undefined;
}

/** What is read here of the script's state: times by the company's clock, which is `ahead` of Redis'. */
interface ScriptState {
  limit?: number;
  remaining?: number;
  end?: number;
  burst?: number;
  blocked?: number;
  ahead?: number;
}

/** One script of several files: what is pure first, then what reads the state, last what decides. */
const SCRIPT = ['./timing.lua', './pacing.lua', './budget.lua', './routes.lua', './decide.lua']
  .map((file) => readFileSync(new URL(file, import.meta.url), 'utf8'))
  .join('\n');

/** Redis cannot be asked for a permit. */
export class RedisError extends Error {
  override readonly name = 'RedisError';
}

interface BudgetCommand {
  rateBudget(
    ...args: (string | number)[]
  ): Promise<[granted: number, waitMs: number, why: WaitReason | '', clockMs: number]>;
}

/**
 * Decides when a request may go, for every process that shares the Redis: permits left are the smallest
 * `x-ratelimit-remaining` seen for the current window, less the requests in flight. So the limit holds whatever
 * the number of workers (Limits, "Other rate limits": 120 a minute per company). So do the additional rate guards:
 * a bucket never holds more requests than its guard lets through. A route that a guard refused which we know nothing
 * of keeps a pace for some minutes; while another consumer uses the limit, a little of it is held back.
 */
export class RateBudget {
  readonly #redis: Redis & BudgetCommand;
  readonly #keptForPeople: number;
  /** What the names of its permits begin with: the script counts those of calls by it. */
  readonly #names: string;
  readonly #leftToSync: number;
  readonly #late: LateSettlements;
  readonly #watch: CountWatch;
  #granted = 0;

  /**
   * @param processId unlike that of any other process before or after: its permits are told by it
   * @param leftToSync the share of the limit that is not for those who ask here: {@link LEFT_TO_SYNC} for calls of the own
   *   logic, of which a process has one budget
   * @param watch of the same connection, for all that ask by it
   */
  constructor(
    redis: Redis,
    keptForPeople = KEPT_FOR_PEOPLE,
    processId: string = randomUUID(),
    leftToSync = 0,
    watch = new CountWatch(redis),
  ) {
    this.#watch = watch;
    this.#keptForPeople = keptForPeople;
    this.#names = leftToSync > 0 ? `${processId}:calls` : processId;
    this.#leftToSync = leftToSync;
    redis.defineCommand('rateBudget', { numberOfKeys: 6, lua: SCRIPT });
    this.#redis = redis as Redis & BudgetCommand;
    this.#late = new LateSettlements((permit, settlement) => {
      this.settle(permit, settlement).catch(() => undefined);
    });
  }

  /**
   * Asks for the right to send one request on behalf of a company.
   *
   * @param bucket where the route's guard will count it, if it has one
   */
  async acquire(company: string, route: string, bucket?: Bucket): Promise<Admission> {
    const late = bucket === undefined ? this.#late.take(company, route) : undefined;
    if (late !== undefined) return this.exchange(late.permit, late.settlement);
    return this.#admit(this.#newPermit(company, route, bucket), NO_SETTLEMENT);
  }

  /** Gives a permit back with what became of its request. */
  async settle(permit: Permit, settlement: Settlement): Promise<void> {
    await this.#run(permit, settlementArguments(permit, settlement), '');
  }

  /**
   * Gives a permit back within two seconds: together with the next {@link acquire} for its company and route, if that
   * comes before, and at once where others may wait for what its answer tells. Those seconds end early with
   * {@link settleLate}.
   */
  async settleSoon(permit: Permit, settlement: Settlement): Promise<void> {
    if (!this.#late.keep(permit, settlement)) await this.settle(permit, settlement);
  }

  /** Gives back at once what {@link settleSoon} has kept. */
  async settleLate(company: string, route: string): Promise<void> {
    const late = this.#late.take(company, route);
    if (late !== undefined) await this.settle(late.permit, late.settlement);
  }

  /**
   * Gives a permit back and asks for the next one, for the same company, route and bucket, in one call. When the
   * call fails, neither may be taken for done: the permit's lease ends by itself.
   */
  async exchange(permit: Permit, settlement: Settlement): Promise<Admission> {
    const next = this.#newPermit(permit.company, permit.route, permit.bucket);
    return this.#admit(next, settlementArguments(permit, settlement));
  }

  /** Learns from an answer to a request that no permit was asked for: the one that told which company it is. */
  async observe(company: string, rate: RateHeaders): Promise<void> {
    await this.settle({ id: 'none', company, route: '', goodUntil: Infinity }, { answer: { rate } });
  }

  /** What is known now, for the dashboard. */
  async read(company: string): Promise<BudgetState> {
    const [state, [seconds, micros]] = await Promise.all([this.#readState(company), this.#redis.time()]);
    const { ahead = 0, end, blocked } = state;
    const now = Number(seconds) * 1_000 + Number(micros) / 1_000 + ahead;
    const known = end !== undefined && end > now;
    return {
      limit: state.limit,
      remaining: known ? Math.max(0, state.remaining ?? 0) : undefined,
      resetAt: known ? end - ahead : undefined,
      burstRemaining: state.burst,
      blockedUntil: blocked !== undefined && blocked > now ? blocked - ahead : undefined,
    };
  }

  async #readState(company: string): Promise<ScriptState> {
    return JSON.parse((await this.#redis.get(`${keyOf(company)}:state`)) ?? '{}');
  }

  /** What is asked for: its time begins before Redis is asked, so it is over no later than there. */
  #newPermit(company: string, route: string, bucket: Bucket | undefined): Permit {
    this.#granted++;
    const id = `${this.#names}:${this.#granted}`;
    const goodUntil = performance.now() + GOOD_FOR_MS;
    return { id, company, route, goodUntil, ...(bucket && { bucket }) };
  }

  async #admit(permit: Permit, settlement: (string | number)[]): Promise<Admission> {
    const { granted, waitMs, why, isUnbroken } = await this.#run(permit, settlement, permit.id);
    if (granted && !isUnbroken) {
      await this.settle(permit, { unsent: true });
      return {
        permit: undefined,
        waitMs: GAP_PAUSE_MS,
        why: permit.bucket === undefined ? 'probe' : 'guard',
      };
    }
    if (!granted) return { permit: undefined, waitMs, why: why || 'limit' };
    return { permit: why === 'probe' ? { ...permit, isProbe: true } : permit };
  }

  async #run({ company, route, bucket }: Permit, settlement: (string | number)[], acquire: string) {
    const key = keyOf(company);
    const counts = bucket?.name ?? route;
    const begun = this.#watch.begin();
    const asked = this.#redis.rateBudget(
      `${key}:state`,
      `${key}:unheard`,
      `${key}:bucket:${counts}`,
      `${key}:pace`,
      `${key}:counted`,
      COUNTING_KEY,
      ...settlement,
      acquire,
      LEASE_MS,
      WINDOW_MS,
      PARTNER_LIMIT,
      this.#keptForPeople,
      bucket?.limit ?? '',
      bucket?.windowMs ?? '',
      bucket?.share ? 1 : '',
      route,
      this.#leftToSync,
      counts,
      this.#watch.gapAgoMs,
    );
    const [granted, waitMs, why, clockMs] = await asked.catch((cause: Error) => {
      throw new RedisError(`Redis cannot be asked for a permit: ${cause.message}`, { cause });
    });
    return { granted: granted === 1, waitMs, why, isUnbroken: this.#watch.isUnbroken(begun, clockMs) };
  }
}

/** Since when what guards let through is counted without a gap, for all companies. */
const COUNTING_KEY = 'budget:counting';

// The braces say where the id ends, in which there may be a colon.
function keyOf(company: string): string {
  return `budget:{${company}}`;
}
