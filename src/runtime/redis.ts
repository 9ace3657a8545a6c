import { Redis, type RedisOptions } from 'ioredis';
import { within } from './health.ts';
import type { Logger } from './logging.ts';

/**
 * The use of a connection.
 * - `worker`: blocking commands of a BullMQ worker, which wait for Redis without an end.
 * - `general`: all other commands, which fail within seconds.
 */
export type RedisRole = 'worker' | 'general';

const LIMIT_MS = 5_000;
const DISCONNECT_LIMIT_MS = 500;
const MAX_RETRY_MS = 1_000;

/** Shorter than the limit of a readiness check, which would not say what to do. */
const CHECK_LIMIT_MS = 1_500;

/** How long the key of {@link checkRedis} stays, in milliseconds. */
const MARK_MS = 60_000;

/**
 * A connection without an answer for so long is dead: TCP itself needs a quarter of an hour to notice.
 * Redis answers a worker's blocking command within ten seconds.
 */
const ROLE_OPTIONS = {
  // BullMQ insists on null.
  worker: { maxRetriesPerRequest: null, socketTimeout: 12_000 },
  general: { maxRetriesPerRequest: 2, commandTimeout: LIMIT_MS, socketTimeout: 6_000 },
} satisfies Record<RedisRole, object>;

/**
 * Opens a connection to Redis that reconnects by itself. It logs one line for an outage, not one for each attempt.
 *
 * @param url redis:// or rediss://
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
    // After a failover the connection may still lead to the old primary.
    reconnectOnError: (error) => error.message.startsWith('READONLY'),
    retryStrategy: (attempt: number) => Math.min(50 * attempt, MAX_RETRY_MS),
  });
  // Several queues and workers listen to one connection.
  redis.setMaxListeners(0);
  let isAway = false;
  redis.on('error', (err) => {
    // At `warn`: watchApp reports an outage as an error, once for all connections.
    if (!isAway) logger.warn({ err, role }, 'Redis cannot be reached, trying on');
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) logger.info({ role }, 'Redis is reachable again');
    isAway = false;
  });
  return redis;
}

/** The settings of Redis would lose the app's data, or stop its work. */
class UnfitRedisError extends Error {}

/**
 * Checks that the app can work with Redis: that Redis answers, takes writes, keeps keys, and is no cluster.
 *
 * @throws Error that says what is wrong and what to do
 */
export async function checkRedis(redis: Redis): Promise<void> {
  try {
    await within(CHECK_LIMIT_MS, async () => {
      await refuseUnfit(redis);
      await redis.set('readiness', '1', 'PX', MARK_MS);
    });
  } catch (cause) {
    if (cause instanceof UnfitRedisError) throw cause;
    const { name, message } = cause as Error;
    throw new Error(
      name === 'ReplyError'
        ? `Redis does not take what the app writes: ${message}`
        : 'Redis cannot be reached: check that it runs at the address of REDIS_URL. The app reconnects by itself.',
      { cause },
    );
  }
}

async function refuseUnfit(redis: Redis): Promise<void> {
  const info = await redis.info().catch((error: Error) => {
    // The user of REDIS_URL may lack the right to ask.
    if (error.name === 'ReplyError') return '';
    throw error;
  });
  if (/^cluster_enabled:1/m.test(info)) {
    throw new UnfitRedisError(
      'Redis runs in cluster mode, and the app uses several keys in one step: set REDIS_URL to a Redis without it.',
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
 * Checks a Redis before the app starts. It accepts one that it cannot reach: the app waits for it.
 *
 * @throws Error that says what to do about cluster mode, eviction, or a missing database number
 */
export async function refuseUnfitRedis(url: string): Promise<void> {
  const limits = { connectTimeout: CHECK_LIMIT_MS, commandTimeout: CHECK_LIMIT_MS };
  const redis = new Redis(url, { ...limits, lazyConnect: true, retryStrategy: null });
  redis.on('error', () => undefined);
  try {
    await refuseUnfit(redis);
    // Without this, ioredis would silently use database 0.
    if (redis.options.db) await redis.select(redis.options.db);
  } catch (cause) {
    const { message } = cause as Error;
    if (cause instanceof UnfitRedisError) throw cause;
    if (/^(ERR|NOPERM)\b/.test(message)) {
      throw new Error(`Redis refuses the database number at the end of REDIS_URL: ${message}`, { cause });
    }
  } finally {
    redis.disconnect();
  }
}
