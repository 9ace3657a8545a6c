import type { Redis } from 'ioredis';
import type { InstanceAccess } from './instance-access.ts';
import { within } from './redis-session-client.ts';
import { SESSION_PREFIX } from './session.ts';
import { newerKey } from './session-replacement.ts';

/**
 * What a session sees by now: it, or the one that an install has put in its place meanwhile.
 *
 * @returns undefined when it has ended
 * @throws StoreUnavailableError
 */
export async function laterSession(redis: Redis, sessionId: string): Promise<InstanceAccess | undefined> {
  for (let key: string | undefined = SESSION_PREFIX + sessionId; key !== undefined; ) {
    const value = await within(redis.get(key));
    if (value !== null) return JSON.parse(value) as InstanceAccess;
    key = await within(newerKey(redis, key));
  }
  return undefined;
}
