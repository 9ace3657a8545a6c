import { expect, test } from 'vitest';
import { createTokenPace } from '../../src/auth/oauth-client.ts';
import { createRedis } from '../../src/runtime/redis.ts';
import { testLogger } from '../support/test-logger.ts';
import { startTestRedis } from '../support/test-redis.ts';

const { logger } = testLogger();

test('token requests of two processes keep to ten a second together, in the order in which they came', async () => {
  const { url } = await startTestRedis();
  const redis = [createRedis(url, 'general', logger), createRedis(url, 'general', logger)];
  const paces = redis.map(createTokenPace);
  const order: string[] = [];
  const times: number[] = [];
  const turns = Array.from({ length: 24 }, async (_, n) => {
    await paces[n % 2]?.();
    order.push(`${n % 2}:${n}`);
    times.push(performance.now());
  });
  await Promise.all(turns);
  for (const own of ['0', '1']) {
    const numbers = order.filter((one) => one.startsWith(own)).map((one) => Number(one.slice(2)));
    expect(numbers).toEqual(numbers.toSorted((one, other) => one - other));
  }
  // The eleventh of any is in a later second of Redis than the first.
  const spans = times.slice(20).map((at, n) => at - (times[n] ?? 0));
  expect(Math.min(...spans)).toBeGreaterThan(900);
  for (const one of redis) one.disconnect();
});

test('without Redis a process keeps to its part, and goes on', async () => {
  const redis = createRedis('redis://127.0.0.1:1', 'general', logger);
  const pace = createTokenPace(redis);
  const startedAt = performance.now();
  await Promise.all(Array.from({ length: 5 }, pace));
  expect(performance.now() - startedAt).toBeGreaterThan(1_000);
  redis.disconnect();
});
