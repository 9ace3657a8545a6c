import type { Redis } from 'ioredis';
import { type Remedy, ServiceError } from '../client/errors.ts';
import { backoffMs } from '../client/retry-timing.ts';
import type { TokenUse, ToldUses } from './accepted-tokens.ts';

/** What a pause is after. */
type PauseKind = keyof typeof PAUSES | 'unwritten';

/**
 * Pauses grow with each failure that follows another within `forgetMs`; all in milliseconds.
 * - `trouble`: the token route does not answer as it should
 * - `rejection`: the API has rejected an access token that was good by its time. A renewal helps or does not: a further
 *   one right away would not, either. One that has helped for a while may help again after as long.
 */
const PAUSES = {
  trouble: { firstMs: 500, longestMs: 5 * 60_000, forgetMs: 60 * 60_000 },
  rejection: { firstMs: 30_000, longestMs: 60 * 60_000, forgetMs: 3 * 60 * 60_000 },
} as const;

/** How long one process is waited for that has said nothing since, in milliseconds: longer than a try of its takes. */
const HELD_MS = 15_000;

/** A wait that the service has asked for is made longer by up to this part, or all who were told would come at once. */
const JITTER = 0.1;

/** What a pause remembers of the failure that it is after. */
interface Reason {
  remedy: Remedy;
  message: string;
  status: number | undefined;
  /** Whether the service has said how long to wait. */
  isAskedFor: boolean;
}

/**
 * Pauses between the refreshes of an instance that bring nothing, for all processes: in Redis, which may forget them.
 * Whoever wants a token meanwhile is told why the refresh before has failed, and the service is not asked. How long a token
 * was of use is kept beside them.
 */
export class RefreshPauses implements ToldUses {
  readonly #redis: Redis;
  readonly #random: () => number;

  constructor(redis: Redis, random: () => number = Math.random) {
    this.#redis = redis;
    this.#random = random;
  }

  /** @throws ServiceError while a pause is under way: what it is after */
  async check(kind: PauseKind, instanceId: string): Promise<void> {
    const key = pauseKey(kind, instanceId);
    const kept = await this.#redis.get(key);
    if (kept === null) return;
    const { isAskedFor, remedy, message, status } = JSON.parse(kept) as Reason;
    const leftMs = isAskedFor ? Math.max(1, await this.#redis.pttl(key)) : undefined;
    throw new ServiceError(remedy, message, { status, retryAfterMs: leftMs });
  }

  /**
   * Begins a pause: longer than the one before, and as long as the service wants at the least.
   *
   * @param usefulMs for how long what the refresh before has brought was of use: no longer than that, but for a first pause
   */
  async begin(
    kind: keyof typeof PAUSES,
    instanceId: string,
    failure: ServiceError,
    usefulMs = Number.POSITIVE_INFINITY,
  ): Promise<void> {
    const { forgetMs, firstMs, longestMs } = PAUSES[kind];
    const steps = { firstMs, longestMs: Math.max(firstMs, Math.min(longestMs, usefulMs)) };
    const { remedy, message, status, retryAfterMs } = failure;
    const askedMs = retryAfterMs === undefined ? 0 : longerBy(this.#random() * JITTER, retryAfterMs);
    const counter = countKey(kind, instanceId);
    const failures = await this.#redis.incr(counter);
    const pauseMs = Math.max(askedMs, backoffMs(failures, this.#random(), steps));
    const reason: Reason = { remedy, message, status, isAskedFor: retryAfterMs !== undefined };
    await this.#redis
      .multi()
      .pexpire(counter, forgetMs)
      .set(pauseKey(kind, instanceId), JSON.stringify(reason), 'PX', pauseMs)
      .exec();
  }

  /**
   * Ends the pause after a failure that no waiting mends: something else may have. The failures stay counted, so that
   * the pause after another one is as long as it would have been.
   */
  async endGivenUp(instanceId: string): Promise<void> {
    const key = pauseKey('trouble', instanceId);
    const kept = await this.#redis.get(key);
    if (kept !== null && (JSON.parse(kept) as Reason).remedy === 'give_up') await this.#redis.del(key);
  }

  /** Tells all processes for how long an access token has been of use, in milliseconds; a longer time that is told stands. */
  async tellUse(of: TokenUse, lastedMs: number): Promise<void> {
    if (((await this.toldUse(of)) ?? -1) >= lastedMs) return;
    const { instanceId, version, use } = of;
    const key = usesKey(instanceId);
    await this.#redis
      .multi()
      .hset(key, use, `${version} ${Math.round(lastedMs)}`)
      .pexpire(key, PAUSES.rejection.forgetMs)
      .exec();
  }

  /** What {@link tellUse} was told last; undefined where that was of another token, or is forgotten. */
  async toldUse({ instanceId, version, use }: TokenUse): Promise<number | undefined> {
    const [of, lastedMs] = (await this.#redis.hget(usesKey(instanceId), use))?.split(' ') ?? [];
    return of === String(version) ? Number(lastedMs) : undefined;
  }

  /** Has all wait for what one process tries again and again, as long as it says so. */
  async hold(kind: 'unwritten', instanceId: string, failure: ServiceError): Promise<void> {
    const { remedy, message, status } = failure;
    const reason: Reason = { remedy, message, status, isAskedFor: false };
    await this.#redis.set(pauseKey(kind, instanceId), JSON.stringify(reason), 'PX', HELD_MS);
  }

  /** Forgets pauses and failures: all is well. */
  async end(kinds: readonly PauseKind[], instanceId: string): Promise<void> {
    await this.#redis.del(
      ...kinds.flatMap((kind) => [pauseKey(kind, instanceId), countKey(kind, instanceId)]),
    );
  }
}

/** Whole milliseconds, and never less than what it is longer than. */
function longerBy(part: number, ms: number): number {
  return Math.ceil(ms) + Math.floor(ms * part);
}

function pauseKey(kind: PauseKind, instanceId: string): string {
  return `tokens:{${instanceId}}:${kind}:pause`;
}

function countKey(kind: PauseKind, instanceId: string): string {
  return `tokens:{${instanceId}}:${kind}:failures`;
}

function usesKey(instanceId: string): string {
  return `tokens:{${instanceId}}:uses`;
}
