import type { Redis, RedisOptions } from 'ioredis';
import type { Logger } from '../src/runtime/logging.ts';
import { forBullmq } from './bullmq-redis.ts';

/** After so long, in milliseconds, a connection that cannot be used is told: Redis may just have been restarted. */
const PATIENCE_MS = 5_000;

/** Opens a connection for blocking commands, which tells the logger when it cannot be used, and when it can be again. */
export type Connect = (logger: Logger, options?: Pick<RedisOptions, 'connectionName'>) => Redis;

/**
 * The connections by which the workers of a process get their jobs: one that they share, and one each, on which BullMQ
 * waits for the next job. Where a single one of them is refused, or may not do what it is for, no job of its queue is
 * worked on, though all other commands go well: so each of them is watched.
 */
export class WorkerConnections {
  readonly #connect: Connect;
  readonly #logger: Logger;
  readonly #shared: Redis;
  readonly #closing = new AbortController();
  readonly #watched: Watched[] = [];

  constructor(connect: Connect, logger: Logger) {
    this.#connect = connect;
    this.#logger = logger;
    this.#shared = connect(logger);
    this.#watched.push(new Watched(this.#shared, 'that all workers share'));
  }

  /** What a worker of the queue is given; what BullMQ opens besides, it closes itself. */
  of(queue: string): Redis {
    const logger = this.#logger.child({ queue });
    const { signal } = this.#closing;
    return forBullmq(this.#shared, signal, {
      duplicate: (options) => {
        const redis = this.#connect(logger, options);
        const watched = new Watched(redis, `on which jobs of the queue “${queue}” are waited for`);
        this.#watched.push(watched);
        return forBullmq(redis, signal, { bzpopmin: waitingOn(redis, watched, logger) });
      },
    });
  }

  /** Names the connections that have not been usable for some seconds, each with the reason. */
  troubles(): string[] {
    return this.#watched.flatMap((watched) => watched.trouble() ?? []);
  }

  /** Asks Redis whether it is there, which a refusal tells, too. @throws Error of the connection */
  async ask(): Promise<void> {
    await this.#shared.ping().catch((error) => {
      if (error.name !== 'ReplyError') throw error;
    });
  }

  /** Ends all connections, whether they can be used or not. */
  close(): void {
    this.#closing.abort();
    for (const watched of this.#watched.splice(0)) watched.cut();
  }
}

/** How Redis begins where a state that may pass keeps it from what it is asked: other lines tell that, and readiness. */
const MAY_PASS =
  /^(?:BUSY|CLUSTERDOWN|LOADING|MASTERDOWN|MISCONF|NOAUTH|NOREPLICAS|OOM|READONLY|TRYAGAIN|UNBLOCKED)\b/;

/**
 * The command that waits for the next job; that Redis refuses it is told once, and that it does not any more: it may
 * forbid it, or it, or a proxy before it, does not know it.
 */
function waitingOn(redis: Redis, watched: Watched, logger: Logger) {
  let isTold = false;
  return async (key: string, seconds: number) => {
    try {
      const found = await redis.bzpopmin(key, seconds);
      watched.works();
      if (isTold) logger.info('Redis lets the worker wait for jobs again');
      isTold = false;
      return found;
    } catch (error) {
      if (error instanceof Error && error.name === 'ReplyError' && !MAY_PASS.test(error.message)) {
        watched.fails(error);
        if (!isTold) logger.error({ err: error }, 'Redis forbids what the queue needs');
        isTold = true;
      }
      throw error;
    }
  };
}

/** One connection, and since when it cannot be used. */
class Watched {
  readonly #redis: Redis;
  readonly #what: string;
  #failingSince: number | undefined = performance.now();
  #reason: Error | undefined;

  constructor(redis: Redis, what: string) {
    this.#redis = redis;
    this.#what = what;
    redis.on('ready', () => this.works());
    redis.on('error', (error) => this.fails(error));
    redis.on('close', () => this.fails());
  }

  works(): void {
    this.#failingSince = undefined;
    this.#reason = undefined;
  }

  fails(error?: Error): void {
    this.#failingSince ??= performance.now();
    // Of a connection that Redis refuses, its words may get lost on the way, now and then: once they came they stay.
    if (this.#reason?.name !== 'ReplyError' || error?.name === 'ReplyError')
      this.#reason = error ?? this.#reason;
  }

  /** Ends it; what waits for an answer fails. */
  cut(): void {
    // Between two tries to connect, ioredis would only not begin another one: neither its end nor what waits were told.
    if (this.#redis.status === 'reconnecting') this.#redis.connect().catch(() => undefined);
    this.#redis.disconnect();
  }

  trouble(): string | undefined {
    const since = this.#failingSince;
    if (since === undefined || performance.now() - since < PATIENCE_MS) return undefined;
    const saysItself = ['ReplyError', 'RefusedNumberError'].includes(this.#reason?.name ?? '');
    const why = saysItself
      ? this.#reason?.message
      : `Redis is away, or takes no more connections (its maxclients): ${this.#reason?.message ?? 'closed'}`;
    return `The connection to Redis ${this.#what} cannot be used. ${why}.`;
  }
}
