import { Redis, type RedisOptions } from 'ioredis';
import type { Logger } from './logging.ts';
import { within } from './readiness.ts';

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

/** The right to use all keys. */
const ALL_KEYS = '~*';

/** Commands of each family that BullMQ's scripts and ours use. `@` stands before a key. */
const TRIED_IN_SCRIPTS = `SET @s 1 PX 60000;GET @s;INCR @s;EXISTS @s;TYPE @s;PEXPIRE @s 60000;PTTL @s;PERSIST @s;
  RENAME @s @t;DEL @t;UNLINK @t;HSET @h f 1;HMSET @h f 1;HGET @h f;HMGET @h f;HGETALL @h;HINCRBY @h f 1;HDEL @h f;
  LPUSH @l 1;RPUSH @l 1;LRANGE @l 0 -1;LLEN @l;LREM @l 1 1;RPOPLPUSH @l @l;LTRIM @l 1 0;SADD @m 1;SCARD @m;SMEMBERS @m;
  SREM @m 1;ZADD @z 1 a;ZRANGE @z 0 -1;ZCARD @z;ZSCORE @z a;ZREM @z a;ZPOPMIN @z;ZREMRANGEBYSCORE @z 0 1;
  XADD @x * f 1;XLEN @x;XTRIM @x MAXLEN 0;DEL @x;TIME`;

const TRY_COMMANDS = `local refused = {}
  for line in ARGV[1]:gmatch('[^;]+') do
    local words = {}
    for word in line:gmatch('%S+') do words[#words + 1] = word:gsub('^@', KEYS[1]) .. '' end
    local answer = redis.pcall(unpack(words))
    local problem = type(answer) == 'table' and answer.err or ''
    if problem:find('permission') or problem:find('NOPERM') or problem:find('user executing') then
      refused[#refused + 1] = problem:find('access') and '~*' or words[1]
    end
  end
  return refused`;

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
    lastErrors.set(redis, err);
    // At `warn`: watchApp reports an outage as an error, once for all connections.
    if (!isAway) logger.warn({ err, role }, 'Redis cannot be reached, trying on');
    isAway = true;
  });
  redis.on('ready', () => {
    if (isAway) logger.info({ role }, 'Redis is reachable again');
    isAway = false;
    lastErrors.delete(redis);
  });
  return redis;
}

/** Why connections are away. A command only says that it was tried too often. */
const lastErrors = new WeakMap<Redis, Error>();

/** The settings of Redis would lose the app's data, or stop its work. */
class UnfitRedisError extends Error {}

/**
 * Checks that the app can work with Redis: that Redis answers, allows what the app does, keeps keys, and is no cluster.
 *
 * @throws Error that says what is wrong and what to do
 */
export async function checkRedis(redis: Redis): Promise<void> {
  try {
    await within(CHECK_LIMIT_MS, () => refuseUnfit(redis));
  } catch (cause) {
    if (cause instanceof UnfitRedisError) throw cause;
    const { name, message } = cause as Error;
    const reason = lastErrors.get(redis)?.message ?? '';
    const what =
      name === 'ReplyError'
        ? `Redis does not take what the app writes: ${message}`
        : /certificate/i.test(reason)
          ? `Redis cannot be reached, as its certificate is not trusted (${reason}): name its authority in NODE_EXTRA_CA_CERTS.`
          : 'Redis cannot be reached: check that it runs at the address of REDIS_URL. The app reconnects by itself.';
    throw new Error(what, { cause });
  }
}

async function refuseUnfit(redis: Redis): Promise<void> {
  const refused: string[] = [];
  const allowed = <Answer>(command: string, asked: Promise<Answer>) =>
    asked.catch((error: Error) => {
      if (!error.message.startsWith('NOPERM')) throw error;
      refused.push(error.message.includes('access') ? ALL_KEYS : command);
      return undefined;
    });
  const info = (await allowed('INFO', redis.info())) ?? '';
  if (/^cluster_enabled:1/m.test(info)) {
    throw new UnfitRedisError(
      'Redis runs in cluster mode, and the app uses several keys in one step: set REDIS_URL to a Redis without it.',
    );
  }
  const [inScripts] = await Promise.all([
    allowed('EVAL', redis.eval(TRY_COMMANDS, 1, 'readiness', TRIED_IN_SCRIPTS) as Promise<string[]>),
    allowed('EVALSHA', redis.evalsha('0'.repeat(40), 0).catch(ignoreMissing)),
    // No script may run it. Before Redis 7.0.8, less than 2 ms would have no end.
    allowed('BZPOPMIN', redis.bzpopmin('readiness:none', 0.01)),
    allowed('CLIENT|SETNAME', redis.client('SETNAME', '')),
    // By itself, as a script hides that Redis takes no writes.
    allowed('SET', redis.set('readiness', '1', 'PX', MARK_MS)),
  ]);
  const missing = [...new Set([...refused, ...(inScripts ?? [])])];
  if (missing.length > 0) {
    const user = redis.options.username || 'default';
    const rights = missing.map((right) => (right === ALL_KEYS ? right : `+${right.toLowerCase()}`));
    throw new UnfitRedisError(
      `Redis does not allow the user "${user}" of REDIS_URL what the app needs: ACL SETUSER ${user} ${rights.join(' ')}`,
    );
  }
  const [, policy = 'noeviction'] = /^maxmemory_policy:(\S+)/m.exec(info) ?? [];
  if (policy !== 'noeviction') {
    throw new UnfitRedisError(
      `Redis drops keys when its memory is full (${policy}): set its maxmemory-policy to noeviction.`,
    );
  }
}

/** No script has such a name. */
function ignoreMissing(error: Error): undefined {
  if (!error.message.startsWith('NOSCRIPT')) throw error;
}

/**
 * Checks a Redis before the app starts. It accepts one that it cannot reach: the app waits for it.
 *
 * @throws Error that says what to do about cluster mode, eviction, missing rights, or a missing database number
 */
export async function refuseUnfitRedis(url: string): Promise<void> {
  const limits = { connectTimeout: CHECK_LIMIT_MS, commandTimeout: CHECK_LIMIT_MS };
  const redis = new Redis(url, { ...limits, lazyConnect: true, retryStrategy: null });
  redis.on('error', () => undefined);
  try {
    // Without this, ioredis would silently use database 0.
    if (redis.options.db) {
      await redis.select(redis.options.db).catch((cause: Error) => {
        if (!/^(ERR|NOPERM)\b/.test(cause.message)) throw cause;
        const text = `Redis refuses the database number at the end of REDIS_URL: ${cause.message}`;
        throw new UnfitRedisError(text, { cause });
      });
    }
    await refuseUnfit(redis);
  } catch (error) {
    if (error instanceof UnfitRedisError) throw error;
  } finally {
    redis.disconnect();
  }
}
