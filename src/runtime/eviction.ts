import type { Redis } from 'ioredis';
import type { Logger } from './logging.ts';

/**
 * Logs when a Redis is set to drop keys for want of memory: what the limit has counted, locks, jobs and sessions would be
 * gone without an error. One that does not tell its policy, or not to us, is taken as it is.
 */
export async function tellEviction(redis: Redis, logger: Logger): Promise<void> {
  const told = await redis.info('memory').catch(() => '');
  const policy = /^maxmemory_policy:(\S+)/m.exec(told)?.[1] ?? 'noeviction';
  if (policy === 'noeviction') return;
  logger.error({ policy }, 'Redis may drop what the app keeps: set its maxmemory-policy to noeviction');
}
