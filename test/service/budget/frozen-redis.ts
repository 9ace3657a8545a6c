import type { Redis } from 'ioredis';

/**
 * A real Redis, but for its clock: the budget and its script are told the time by the test.
 *
 * @param nowMs whole milliseconds since 1970
 */
export function frozenRedis(redis: Redis, nowMs: () => number): Redis {
  const time = () => [Math.floor(nowMs() / 1_000), (nowMs() % 1_000) * 1_000] as const;
  const client = {
    defineCommand(name: string, { numberOfKeys, lua }: { numberOfKeys: number; lua: string }) {
      redis.defineCommand(name, {
        numberOfKeys,
        lua: lua.replace("redis.call('TIME')", '{ ARGV[#ARGV - 1], ARGV[#ARGV] }'),
      });
    },
    rateBudget(...args: (string | number)[]) {
      const run = (redis as unknown as { rateBudget(...all: (string | number)[]): Promise<unknown> })
        .rateBudget;
      return run.call(redis, ...args, ...time());
    },
    get: (key: string) => redis.get(key),
    time: async () => time(),
    on: redis.on.bind(redis),
  };
  return client as unknown as Redis;
}
