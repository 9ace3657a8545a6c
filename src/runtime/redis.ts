import { setTimeout as sleep } from 'node:timers/promises';
import type { Redis, RedisOptions } from 'ioredis';
import { tellEviction } from './eviction.ts';
import type { Logger } from './logging.ts';
import { OutageLog } from './outage-log.ts';
import { openAtNumber } from './redis-number.ts';

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

/**
 * After so long without an answer a connection is taken for dead, in milliseconds, as when the machine at its other end
 * is gone, or the network in between: nobody says so then, and TCP itself needs a quarter of an hour. A worker's
 * blocking command is answered after ten seconds at the latest.
 */
const SILENCE_MS = { worker: 12_000, general: 6_000 } as const satisfies Record<RedisRole, number>;

const ROLE_OPTIONS = {
  // BullMQ insists on null here: a blocking command outlives any number of reconnects.
  worker: { maxRetriesPerRequest: null },
  general: { maxRetriesPerRequest: 2, commandTimeout: COMMAND_TIMEOUT_MS },
} satisfies Record<RedisRole, object>;

/** What ioredis does about an answer that is an error: connects anew and sends the command again; or passes it on. */
const RECONNECT_AND_SEND_AGAIN = 2;

/** How often it is tried whether a Redis that took no writes takes them again, in milliseconds. */
const TRY_AGAIN_MS = 1_000;

/** How long the mark of {@link tryToWrite} stays, in milliseconds. */
const MARK_MS = 60_000;

/** How long {@link checkRedis} waits, in milliseconds: less than who asks for readiness does, as it says what to do. */
const CHECK_LIMIT_MS = 1_500;

/**
 * Opens a connection to Redis that comes back by itself after an outage, and logs each reason of an outage once, not per attempt.
 * One that leads to a server that takes no writes (READONLY) leaves it, and sends the command once more; whoever waits
 * for it is told when it is refused then, too.
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
  const redis = openAtNumber(url, {
    ...options,
    ...ROLE_OPTIONS[role],
    connectTimeout: CONNECT_TIMEOUT_MS,
    disconnectTimeout: DISCONNECT_TIMEOUT_MS,
    socketTimeout: SILENCE_MS[role],
    reconnectOnError: (error) => {
      if (!error.message.startsWith('READONLY')) return false;
      void noteRefusal(error);
      return leavesFor(error) ? RECONNECT_AND_SEND_AGAIN : false;
    },
    retryStrategy: (attempt: number) => Math.min(attempt * RECONNECT_STEP_MS, MAX_RECONNECT_PAUSE_MS),
  });
  // Several queues and workers listen to one connection.
  redis.setMaxListeners(0);
  const leavesFor = onceEach();
  const outage = new OutageLog(role, logger);
  let takesNoWrites = false;
  const lookAtSettings = () => {
    if (role === 'general') void tellEviction(redis, logger);
  };
  const noteRefusal = async (error: Error) => {
    if (takesNoWrites) return;
    takesNoWrites = true;
    logger.error({ err: error, role }, 'Redis takes no writes, trying on');
    // That it can be reached says nothing, and the server may be promoted without a new connection.
    while (!(await tryToWrite(redis).catch(() => false))) {
      if (redis.status === 'end') return;
      await sleep(TRY_AGAIN_MS, undefined, { ref: false });
    }
    takesNoWrites = false;
    logger.info({ role }, 'Redis takes writes again');
    lookAtSettings();
  };
  redis.on('error', (error) => outage.tell(error));
  // A proxy before Redis may take connections and end them in order: then there is no error. Nor is there when we leave.
  redis.on('reconnecting', () => {
    if (!takesNoWrites) outage.tellSoon();
  });
  redis.on('end', () => outage.forget());
  redis.on('ready', () => {
    outage.end();
    // Each time: after a failover it may be another server, with settings of its own.
    if (!takesNoWrites) lookAtSettings();
  });
  return redis;
}

/**
 * After a failover the connection may still lead to the server that was the first before: a command that is refused
 * there is worth a new connection, but one alone, as there may be no other server. So the command is remembered: its
 * arguments are the same when it is sent again.
 *
 * @returns a function that says whether this is the first refusal of its command
 */
function onceEach(): (refusal: Error & { command?: { args?: object } }) => boolean {
  const refused = new WeakSet<object>();
  return ({ command: { args } = {} }) => {
    if (args === undefined || refused.has(args)) return false;
    refused.add(args);
    return true;
  };
}

/** @throws Error of Redis where it takes no writes, of the connection where it cannot be reached */
function tryToWrite(redis: Redis): Promise<'OK'> {
  return redis.set('readiness', '1', 'PX', MARK_MS);
}

/** Writes, and does what all scripts of the app begin with, on several keys at once, as most of them are. */
async function tryToWork(redis: Redis): Promise<void> {
  await tryToWrite(redis);
  // These two lie in different slots: in cluster mode a script cannot have both, whichever server is asked.
  await redis.eval("return redis.call('TIME')", 2, 'readiness', 'readiness:too');
}

/** How Redis begins, or what it says within a script, where its user may not do what the app needs. */
const FORBIDDEN = /^(?:NOAUTH|WRONGPASS|NOPERM)\b|user executing the script can't/;

/** How it begins where keys are spread over servers by their slots. */
const IN_CLUSTER = /^(?:CROSSSLOT|MOVED|ASK|CLUSTERDOWN)\b/;

function meaningOf({ message }: Error): string {
  if (IN_CLUSTER.test(message)) {
    return 'Redis runs in cluster mode, in which the app cannot work, as its scripts use several keys at once: lead REDIS_URL to one without it';
  }
  if (!FORBIDDEN.test(message)) return 'Redis takes no writes';
  return 'Redis forbids what the app needs: see user and password in REDIS_URL, and allow this user all commands but those that Redis calls dangerous, on all keys';
}

/**
 * Whether Redis can be worked with: one that answers may still take no writes, for want of memory or disk, forbid what
 * the app needs, or run in cluster mode.
 *
 * @param options.isPrivate whether it is the app's own one, not that of REDIS_URL
 * @throws Error that says what is wrong and what to do, for whoever is on call
 */
export async function checkRedis(redis: Redis, { isPrivate }: { isPrivate: boolean }): Promise<void> {
  try {
    await withinLimit(tryToWork(redis));
  } catch (error) {
    if (error instanceof Error && error.name === 'ReplyError') {
      throw new Error(`${meaningOf(error)}: ${error.message}`, { cause: error });
    }
    const what = isPrivate
      ? "it is the app's own one, as REDIS_URL is not set, and is started again by itself when it has died. If this stays, redis/server.log in .data says why; one that hangs has to be ended: its process is in redis/address.json."
      : 'see that it runs at the address of REDIS_URL.';
    throw new Error(
      `Redis cannot be reached: ${what} Nothing is lost, and the app goes on by itself when it is back.`,
      { cause: error },
    );
  }
}

async function withinLimit(answer: Promise<unknown>): Promise<void> {
  const { promise: late, reject } = Promise.withResolvers<never>();
  const timer = setTimeout(() => reject(new Error(`no answer within ${CHECK_LIMIT_MS} ms`)), CHECK_LIMIT_MS);
  try {
    await Promise.race([answer, late]);
  } finally {
    clearTimeout(timer);
  }
}
