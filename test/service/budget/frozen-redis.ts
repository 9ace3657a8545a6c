import type { Redis } from 'ioredis';

/**
 * A real Redis whose TIME comes from the test. Keys expire by the real clock.
 *
 * @param nowMs milliseconds since 1970
 */
export function frozenRedis(redis: Redis, nowMs: () => number): Redis {
  const time = () => [String(Math.floor(nowMs() / 1_000)), String(Math.round((nowMs() % 1_000) * 1_000))];
  const run = redis as unknown as { rateBudget(...all: string[]): Promise<unknown> };
  const client = {
    defineCommand(name: string, { numberOfKeys, lua }: { numberOfKeys: number; lua: string }) {
      redis.defineCommand(name, {
        numberOfKeys,
        lua: lua.replace("redis.call('TIME')", '{ ARGV[2], ARGV[3] }'),
      });
    },
    rateBudget: (...args: string[]) => run.rateBudget(...args, ...time()),
    get: (key: string) => redis.get(key),
    time: async () => time(),
  };
  return client as unknown as Redis;
}
