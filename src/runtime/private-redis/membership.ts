import { Redis } from 'ioredis';
import { type Address, urlOf } from './address.ts';

/** The name of the one connection by which a process counts as a user of the private Redis. */
const MEMBER_NAME = 'private-redis-member';
/** The name of that connection when its process is about to end. */
const LEAVING_NAME = 'private-redis-leaving';
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
  /** Whether the server has gone, or has closed the connection. */
  readonly isGone: boolean;
  /** Tells once that the server has gone, or has closed the connection; not after {@link Membership.close}. */
  onGone(listener: () => void): void;
  /**
   * Gives up the place, so that nobody counts this process from then on; then counts those that use this Redis. Of
   * several processes that leave at the same time the last one counts nobody.
   *
   * @throws when it does not answer, or is gone
   */
  leaveAndCount(): Promise<number>;
  /** Ends the connection, and with it the place. */
  close(): void;
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
  let isClosed = false;
  return {
    get isGone() {
      return redis.status !== 'ready';
    },
    onGone: (listener) => {
      const tell = () => {
        if (!isClosed) listener();
      };
      if (redis.status === 'ready') redis.once('end', tell);
      else tell();
    },
    leaveAndCount: async () => {
      const list = await withinLimit(redis, async () => {
        await redis.client('SETNAME', LEAVING_NAME);
        return String(await redis.client('LIST'));
      });
      return list.split('\n').filter((line) => line.includes(` name=${MEMBER_NAME} `)).length;
    },
    close: () => {
      isClosed = true;
      redis.disconnect();
    },
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
