import { once } from 'node:events';
import { connect } from 'node:net';
import { Redis } from 'ioredis';
import { afterAll } from 'vitest';

/** What a Redis holds, and what was ever sent to it. */
export interface RedisRecord {
  /** Keys and values that are there now, one a line. */
  dump(): Promise<string[]>;
  /** Every command since the record began, one a line; a stand-in for Redis that cannot tell them says so alone. */
  commands(): string;
}

const READERS: Record<string, (redis: Redis, key: string) => Promise<unknown>> = {
  string: (redis, key) => redis.get(key),
  hash: (redis, key) => redis.hgetall(key),
  list: (redis, key) => redis.lrange(key, '0', '-1'),
  set: (redis, key) => redis.smembers(key),
  zset: (redis, key) => redis.zrange(key, '0', '-1'),
  stream: (redis, key) => redis.xrange(key, '-', '+'),
};

/** Begins the record; it ends when the test file is through. */
export async function recordRedis(url: string): Promise<RedisRecord> {
  const redis = new Redis(url);
  // As it comes over the wire: a client would have to tell commands from replies, which it cannot on a busy server.
  const { hostname, port, password } = new URL(url);
  const watching = connect(Number(port), hostname).setEncoding('latin1');
  let commands = '';
  watching.on('data', (text: string) => {
    commands += text;
  });
  if (password !== '') {
    watching.write(`AUTH ${decodeURIComponent(password)}\r\n`);
    await once(watching, 'data');
  }
  watching.write('MONITOR\r\n');
  await once(watching, 'data');
  afterAll(() => {
    watching.destroy();
    redis.disconnect();
  });
  return {
    commands: () => commands,
    async dump() {
      const keys = await redis.keys('*');
      return Promise.all(
        keys.map(async (key) => {
          const type = await redis.type(key);
          const value = type === 'none' ? 'gone' : await READERS[type]?.(redis, key);
          if (value === undefined) throw new Error(`${key} is a ${type}, which is not read`);
          return `${key} ${flat(value).join(' ')}`;
        }),
      );
    },
  };
}

/** All texts in it, as they are: JSON would escape what is escaped already. */
function flat(value: unknown): string[] {
  if (typeof value !== 'object' || value === null) return [String(value)];
  return Object.entries(value).flatMap(([name, item]) => [name, ...flat(item)]);
}
