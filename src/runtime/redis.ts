import { Redis } from 'ioredis';
import type { Logger } from './logging.ts';

/**
 * What a connection is for.
 * - `worker`: blocking commands of a BullMQ worker, which wait for Redis as long as it takes.
 * - `general`: everything that somebody waits for (adding jobs, sessions, budgets): fails within seconds instead.
 */
export type RedisRole = 'worker' | 'general';

const CONNECT_TIMEOUT_MS = 5_000;
const COMMAND_TIMEOUT_MS = 5_000;
const DISCONNECT_TIMEOUT_MS = 500;
const MAX_RECONNECT_PAUSE_MS = 1_000;
const RECONNECT_STEP_MS = 50;

const ROLE_OPTIONS = {
  // BullMQ insists on null here: a blocking command outlives any number of reconnects.
  worker: { maxRetriesPerRequest: null },
  general: { maxRetriesPerRequest: 2, commandTimeout: COMMAND_TIMEOUT_MS },
} satisfies Record<RedisRole, object>;

/**
 * Opens a connection to Redis that comes back by itself after an outage, and logs an outage once, not per attempt.
 *
 * @param url redis:// or rediss://
 * @returns the connection, connecting; close it with `quit()` or `disconnect()`
 */
export function createRedis(url: string, role: RedisRole, logger: Logger): Redis {
  const redis = new Redis(url, {
    ...ROLE_OPTIONS[role],
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    retryStrategy: (attempt: number) => Math.min(attempt * RECONNECT_STEP_MS, MAX_RECONNECT_PAUSE_MS),
  });
  let isDown = false;
  redis.on('error', (error: Error) => {
    if (isDown) return;
    isDown = true;
    logger.error({ err: error, role }, 'Redis cannot be reached, trying on');
  });
  redis.on('ready', () => {
    if (isDown) logger.info({ role }, 'Redis is reachable again');
    isDown = false;
  });
  return redis;
}
