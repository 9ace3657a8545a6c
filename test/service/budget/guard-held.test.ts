import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import type { Bucket } from '../../../src/service/budget/bucket.ts';
import { RateBudget } from '../../../src/service/budget/rate-budget.ts';
import { startTestRedis } from '../../support/test-redis.ts';
import { RESET, rate } from './test-budget.ts';

const BUCKET: Bucket = { name: 'bucket', tier: '2', limit: 5, windowMs: 200 };
const LOOPS = 8;
const COMPANIES = 12;
const RUN_MS = 2_500;
const TURNS_OF_WINDOW = 40;
/** As far apart as a request's way there and back may take it. */
const WAY_MS = 40;

const connections: Redis[] = [];
afterAll(() => {
  for (const connection of connections) connection.disconnect();
});

/** The most requests that any stretch of a window's length holds: no service can see more, however its windows lie. */
function fullest(times: readonly number[]): number {
  const sorted = times.toSorted((one, other) => one - other);
  return Math.max(
    ...sorted.map((start) => sorted.filter((at) => at >= start && at < start + BUCKET.windowMs).length),
  );
}

async function useTheBucket(company: string, budgets: readonly RateBudget[]) {
  const counted: number[] = [];
  let turns = 0;
  let resetMs = RESET;
  const endsAt = performance.now() + RUN_MS;

  /** One request that the service counts somewhere on its way; now and then its answer is lost, or it never leaves. */
  async function sendOne(budget: RateBudget): Promise<number> {
    const admission = await budget.acquire(company, '/links', BUCKET);
    if (admission.permit === undefined) return admission.waitMs;
    const fate = Math.random();
    if (fate < 0.02) {
      await budget.settle(admission.permit, { unsent: true });
      return 0;
    }
    await sleep(Math.random() * WAY_MS);
    counted.push(performance.now());
    await sleep(Math.random() * WAY_MS);
    await budget.settle(admission.permit, fate > 0.98 ? {} : { answer: { rate: rate(100, { resetMs }) } });
    return 0;
  }

  await Promise.all(
    Array.from({ length: LOOPS }, async (_, index) => {
      const budget = budgets[index % budgets.length];
      while (budget !== undefined && performance.now() < endsAt) {
        // Again and again a new window, so that the limit is never used up: this is about the guard.
        if (turns++ % TURNS_OF_WINDOW === 0) {
          resetMs += 60_000;
          await budget.observe(company, rate(119, { resetMs }));
        }
        await sleep(await sendOne(budget));
      }
    }),
  );
  return counted;
}

test('whatever the latencies and losses, no window of a guard sees more than it lets through', async () => {
  const { url } = await startTestRedis();
  const budgets = [0, 1].map(() => {
    const connection = new Redis(url);
    connections.push(connection);
    return new RateBudget(connection);
  });
  const all = await Promise.all(
    Array.from({ length: COMPANIES }, (_, index) => useTheBucket(`company-${index}`, budgets)),
  );
  for (const counted of all) {
    expect(counted.length).toBeGreaterThan(0);
    expect(fullest(counted)).toBeLessThanOrEqual(BUCKET.limit);
  }
});
