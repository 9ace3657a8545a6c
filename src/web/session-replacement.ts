import type { Redis } from 'ioredis';

/** How long it is remembered that a session has ended: longer than any request that was under way then, in seconds. */
const ENDED_SECONDS = 20 * 60;

/** The mark of a session that has ended for good; of one that a log-out follows it is the key of the newer one. */
const FOR_GOOD = '1';

/** A session that takes the place of one that ends. */
export interface SessionReplacement {
  endedKey: string;
  /** Whether the one that ends is kept in Redis, as a visitor's is not: then it has to be there still. */
  isKept: boolean;
  /**
   * Whether a log-out that was under way with the one that ends goes on to this one, which is its browser's. Where copies
   * of a cookie are logged out it must not, as it may be one of them.
   */
  logOutFollows: boolean;
  key: string;
  value: string;
  seconds: number;
  /** A name that leads to the key for a while. */
  pointer?: { name: string; seconds: number } | undefined;
}

// Once the new session is there this has been done: a command is sent again when its connection breaks before the
// answer. One that comes after its deadline does nothing, as whoever waited for it was told that it could not be done.
const REPLACE = `
if redis.call('EXISTS', KEYS[3]) == 1 then return 'done' end
local now = redis.call('TIME')
if now[1] * 1000 + now[2] / 1000 > tonumber(ARGV[1]) then return 'late' end
if ARGV[2] == 'kept' and redis.call('EXISTS', KEYS[1]) == 0 then return 'ended' end
if redis.call('EXISTS', KEYS[4]) == 1 then return 'ended' end
redis.call('SET', KEYS[3], ARGV[3], 'EX', ARGV[4])
if KEYS[5] then redis.call('SET', KEYS[5], KEYS[3], 'EX', ARGV[6]) end
redis.call('SET', KEYS[2], ARGV[7], 'EX', ARGV[5])
redis.call('DEL', KEYS[1])
return 'done'`;

/** The name of the mark that a session has ended. */
export function endedName(key: string): string {
  return `ended-${key}`;
}

/** Redis' own time, in milliseconds since 1970. */
export async function redisNow(redis: Redis): Promise<number> {
  const [seconds, microseconds] = await redis.time();
  return Number(seconds) * 1_000 + Number(microseconds) / 1_000;
}

/**
 * Puts a session in the place of another one, all at once.
 *
 * @param deadline by Redis' own clock, in milliseconds since 1970: later nothing is done
 * @returns what became of it; `ended` when the other one is not there any more, or the new one has ended already
 */
export async function replaceAtOnce(
  redis: Redis,
  { endedKey, isKept, logOutFollows, key, value, seconds, pointer }: SessionReplacement,
  deadline: number,
): Promise<'done' | 'late' | 'ended'> {
  const keys = [endedKey, endedName(endedKey), key, endedName(key), ...(pointer ? [pointer.name] : [])];
  const mark = logOutFollows ? key : FOR_GOOD;
  const values = [deadline, isKept ? 'kept' : '', value, seconds, ENDED_SECONDS, pointer?.seconds ?? 0, mark];
  return (await redis.eval(REPLACE, keys.length, ...keys, ...values)) as 'done' | 'late' | 'ended';
}

/**
 * Ends a session for good.
 *
 * @returns whether it was there, and the key of the session that a log-out has to go on to, if one has taken its place in
 * the last twenty minutes
 */
export async function endAtOnce(
  redis: Redis,
  key: string,
): Promise<{ wasThere: boolean; newer: string | undefined }> {
  const name = endedName(key);
  const results = await redis.multi().get(name).set(name, FOR_GOOD, 'EX', ENDED_SECONDS).del(key).exec();
  return { wasThere: results?.[2]?.[1] === 1, newer: newerOf(results?.[0]?.[1]) };
}

/** The key of the session that has taken the place of one in the last twenty minutes, and that is its browser's. */
export async function newerKey(redis: Redis, key: string): Promise<string | undefined> {
  return newerOf(await redis.get(endedName(key)));
}

/** @param mark of a session, if it has ended */
function newerOf(mark: unknown): string | undefined {
  return typeof mark === 'string' && mark !== FOR_GOOD ? mark : undefined;
}
