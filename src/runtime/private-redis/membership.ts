import { Redis } from 'ioredis';
import { type Address, urlOf } from './address.ts';

/** The name of the one connection by which a process counts as a user of the private Redis. */
const MEMBER_NAME = 'private-redis-member';
const ANSWER_LIMIT_MS = 2_000;
/** How long a connection that is given up may take to close, and keep the process from ending. */
const DISCONNECT_LIMIT_MS = 100;

/** Why a server could not be joined. */
export type JoinFailure =
  /** nobody listens there */
  | 'refused'
  /** somebody else listens there: it does not know the password */
  | 'foreign'
  /** it takes connections, and says nothing */
  | 'silent';

/** A process's place among the users of the private Redis: it ends with the process, however that ends. */
export interface Membership {
  /**
   * Counts the other processes that use this Redis; 0 also when the server is gone.
   *
   * @throws when it does not answer
   */
  countOthers(): Promise<number>;
  leave(): void;
}

class SilenceError extends Error {}

/** Joins the server at this address, waiting while it loads its data. */
export async function join(address: Pick<Address, 'port' | 'password'>): Promise<Membership | JoinFailure> {
  let lastError: Error | undefined;
  const redis = new Redis(urlOf(address), {
    connectionName: MEMBER_NAME,
    lazyConnect: true,
    retryStrategy: null,
    maxRetriesPerRequest: 0,
    disconnectTimeout: DISCONNECT_LIMIT_MS,
  });
  redis.on('error', (error: Error) => {
    lastError = error;
  });
  try {
    await withinLimit(redis, async () => {
      await redis.connect();
      await redis.ping();
    });
  } catch (error) {
    redis.disconnect();
    if (error instanceof SilenceError) return 'silent';
    return lastError !== undefined && 'code' in lastError && lastError.code === 'ECONNREFUSED'
      ? 'refused'
      : 'foreign';
  }
  return {
    countOthers: async () => {
      if (redis.status !== 'ready') return 0;
      const list = String(await withinLimit(redis, () => redis.client('LIST')));
      const members = list.split('\n').filter((line) => line.includes(` name=${MEMBER_NAME} `));
      return members.length - 1;
    },
    leave: () => redis.disconnect(),
  };
}

/** One limit for the whole exchange: ioredis' own are for each command, and for the connection without its handshake. */
async function withinLimit<Result>(redis: Redis, action: () => Promise<Result>): Promise<Result> {
  let isOver = false;
  const timer = setTimeout(() => {
    isOver = true;
    // What is under way then fails.
    redis.disconnect();
  }, ANSWER_LIMIT_MS);
  try {
    return await action();
  } catch (error) {
    throw isOver ? new SilenceError('The private Redis does not answer.', { cause: error }) : error;
  } finally {
    clearTimeout(timer);
  }
}
