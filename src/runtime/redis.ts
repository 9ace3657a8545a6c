import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from './logging.ts';

/**
 * What a connection is for.
 * - `worker`: blocking commands of a BullMQ worker, which wait for Redis as long as it takes.
 * - `general`: everything that somebody waits for (adding jobs, budgets): fails within seconds instead.
 */
export type RedisRole = 'worker' | 'general';

const LIMIT_MS = 5_000;
const DISCONNECT_LIMIT_MS = 500;
const MAX_RETRY_MS = 1_000;

/** Less than who asks for readiness waits, as this check says what to do. */
const CHECK_LIMIT_MS = 1_500;

/** How long the key of {@link checkRedis} stays, in milliseconds. */
const MARK_MS = 60_000;

/**
 * Without an answer for so long a connection is dead, as when the machine at its other end is gone: TCP itself needs a
 * quarter of an hour. A worker's blocking command is answered after ten seconds at the latest.
 */
const ROLE_OPTIONS = {
  // BullMQ insists on null here: a blocking command outlives any number of reconnects.
  worker: { maxRetriesPerRequest: null, socketTimeout: 12_000 },
  general: { maxRetriesPerRequest: 2, commandTimeout: LIMIT_MS, socketTimeout: 6_000 },
} satisfies Record<RedisRole, object>;

/**
 * Opens a connection to Redis that comes back by itself after an outage. It logs an outage once, not once an attempt.
 *
 * @param url redis:// or rediss://
 * @param options.keyPrefix what all keys begin with
 * @returns the connection, connecting; close it with `quit()` or `disconnect()`
 */
export function createRedis(
  url: string,
  role: RedisRole,
  logger: Logger,
  options: Pick<RedisOptions, 'keyPrefix'> = {},
): Redis {
  const redis = new Redis(url, {
    ...options,
    ...ROLE_OPTIONS[role],
    connectTimeout: LIMIT_MS,
    disconnectTimeout: DISCONNECT_LIMIT_MS,
    // After a failover the connection may still lead to the server that was the primary before.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    retryStrategy: (attempt: number) => Math.min(50 * attempt, MAX_RETRY_MS),
  });
  // Several queues and workers listen to one connection.
  redis.setMaxListeners(0);
  let isAway = false;
  redis.on('error', (err) => {
    // At `warn`: the watch over all of the app tells the outage, once for all connections.
    if (!isAway) logger.warn({ err, role }, 'Redis cannot be reached, trying on');
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) logger.info({ role }, 'Redis is reachable again');
    isAway = false;
  });
  return redis;
}

/** Redis is set up so that the app would lose what it keeps there, or cannot work at all. */
class UnfitRedisError extends Error {}

/**
 * Whether Redis can be worked with: one that answers may take no writes, drop keys, or run in cluster mode.
 *
 * @throws Error that says what is wrong and what to do
 */
export async function checkRedis(redis: Redis): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_LIMIT_MS} ms`)), CHECK_LIMIT_MS);
  try {
    await Promise.race([late, refuseUnfit(redis).then(() => redis.set('readiness', '1', 'PX', MARK_MS))]);
  } catch (error) {
    if (error instanceof UnfitRedisError || !(error instanceof Error)) throw error;
    if (error.name === 'ReplyError')
      throw new Error(`Redis does not take what the app writes: ${error.message}`, { cause: error });
    throw new Error(
      'Redis cannot be reached: see that it runs at the address of REDIS_URL. The app goes on by itself when it is back.',
      { cause: error },
    );
  } finally {
    clearTimeout(timer);
  }
}

async function refuseUnfit(redis: Redis): Promise<void> {
  // A user of Redis may not be allowed to ask: then nothing is known of it.
  const info = await redis.info().catch((error: Error) => {
    if (error.name !== 'ReplyError') throw error;
    return '';
  });
  if (/^cluster_enabled:1/m.test(info)) {
    throw new UnfitRedisError(
      'Redis runs in cluster mode. The app uses several keys in one step: lead REDIS_URL to a Redis without it.',
    );
  }
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  if (policy !== 'noeviction') {
    throw new UnfitRedisError(
      `Redis drops keys when its memory is full (${policy}): set its maxmemory-policy to noeviction.`,
    );
  }
}

/**
 * Looks once at a Redis before the app starts. One that is away is not refused: the app waits for it.
 *
 * @throws Error that says what to do: it is in cluster mode, evicts keys, or has no database of the URL's number
 */
export async function refuseUnfitRedis(url: string): Promise<void> {
  const limits = { connectTimeout: CHECK_LIMIT_MS, commandTimeout: CHECK_LIMIT_MS };
  const redis = new Redis(url, { ...limits, lazyConnect: true, retryStrategy: null });
  redis.on('error', () => undefined);
  try {
    await refuseUnfit(redis);
    // ioredis goes on in database 0 where it is refused another.
    if (redis.options.db) await redis.select(redis.options.db);
  } catch (error) {
    if (error instanceof UnfitRedisError) throw error;
    if (error instanceof Error && /^(ERR|NOPERM)\b/.test(error.message))
      throw new Error(`Redis refuses the database at the end of REDIS_URL: ${error.message}`, {
        cause: error,
      });
  } finally {
    redis.disconnect();
  }
}
