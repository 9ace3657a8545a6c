import { Redis, type RedisOptions } from 'ioredis';

/** How long {@link checkNumber} waits, in milliseconds. */
const CHECK_LIMIT_MS = 1_500;

/** Redis does not let us into the database whose number stands at the end of its URL. */
class RefusedNumberError extends Error {
  constructor(number: number, cause: Error) {
    super(
      `Redis refuses the database with the number ${number}: change that at the end of REDIS_URL, or have Redis keep more databases, or let this user SELECT them. (${cause.message})`,
      { cause },
    );
    this.name = 'RefusedNumberError';
  }
}

/**
 * ioredis goes on in database 0 where it is refused the one that it was told, and so would every installation with such
 * a number, all in the same one. This connection is left instead, and tried again, as is a duplicate of it.
 */
function keepNumber(redis: Redis): Redis {
  const select = redis.select.bind(redis);
  const duplicate = redis.duplicate.bind(redis);
  return Object.assign(redis, {
    duplicate: (options: Partial<RedisOptions> = {}) => keepNumber(duplicate(options)),
    select: async (number: number) => {
      try {
        return await select(number);
      } catch (error) {
        // Not refused: ioredis asks before it knows that this Redis has no HELLO, and once more when it has logged in.
        if ((error as Error).message.startsWith('NOAUTH')) throw error;
        redis.disconnect(true);
        if (redis.listenerCount('error') > 0)
          redis.emit('error', new RefusedNumberError(number, error as Error));
        // Whoever waits for it, which is ioredis with a new connection, would go on with that one.
        return new Promise<never>(() => {});
      }
    },
  });
}

/** Opens a connection as ioredis does, which never works in another database than that of the number in its URL. */
export function openAtNumber(url: string, options: Omit<RedisOptions, 'replyMapping'>): Redis {
  return keepNumber(new Redis(url, options));
}

/**
 * Looks once whether Redis has the database whose number stands at the end of a URL. A Redis that is away, or refuses
 * for a reason that may pass, is none of this: the connections that are opened then try on.
 *
 * @throws Error that says what to do
 */
export async function checkNumber(url: string): Promise<void> {
  const redis = openAtNumber(url, { lazyConnect: true, retryStrategy: null });
  if (!redis.options.db) return;
  let refusal: Error | undefined;
  redis.on('error', (error) => {
    if (error instanceof RefusedNumberError && /^(ERR|NOPERM)\b/.test((error.cause as Error).message))
      refusal = error;
  });
  const limit = setTimeout(() => redis.disconnect(), CHECK_LIMIT_MS);
  await redis.connect().catch(() => undefined);
  clearTimeout(limit);
  redis.disconnect();
  if (refusal !== undefined) throw refusal;
}
