import { expect, test } from 'vitest';
import { RateBudget } from '../../../src/service/budget/rate-budget.ts';
import { connectThroughGate } from '../../support/redis-gate.ts';
import { startTestRedis } from '../../support/test-redis.ts';
import { ROUTE } from './rate.ts';

/** How long a permit is good for, in milliseconds. */
const GOOD_FOR_MS = 5_000;

test('a permit grows old from when it was asked for: Redis may have taken its time with it', async () => {
  const gate = await connectThroughGate((await startTestRedis()).url);
  const budget = new RateBudget(gate.redis);
  // What is granted while the connection is made is not used.
  await gate.redis.ping();
  const isHeld = gate.arm('budget:{slow}', 'hold');
  const asking = budget.acquire('slow', ROUTE);
  await isHeld;
  const asked = performance.now();
  gate.release();
  expect((await asking).permit?.goodUntil).toBeLessThanOrEqual(asked + GOOD_FOR_MS);
});
