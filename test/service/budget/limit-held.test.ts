import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { RateBudget } from '../../../src/service/budget/rate-budget.ts';
import type { Headers } from '../../../src/service/http.ts';
import { readRateHeaders } from '../../../src/service/rate-headers.ts';
import { startTestRedis } from '../../support/test-redis.ts';

const WINDOW_MS = 2_000;
const LIMIT = 40;
const WINDOWS = 2;
const LOOPS = 8;
/** Companies at the same time: what goes wrong once in a hundred windows is to be seen in one run. */
const COMPANIES = 24;

/** The limit of the service, and nothing else: a window begins with its first request. Its clock is not ours. */
class LimitModel {
  readonly perWindow: number[] = [];
  refused = 0;
  #start = Number.NEGATIVE_INFINITY;

  answer(): Headers {
    const now = Date.now() + 7_300;
    if (now - this.#start >= WINDOW_MS) {
      this.#start = now;
      this.perWindow.push(0);
    }
    const count = (this.perWindow.at(-1) ?? 0) + 1;
    this.perWindow[this.perWindow.length - 1] = count;
    if (count > LIMIT) this.refused++;
    return {
      date: new Date(now).toUTCString(),
      'x-ratelimit-limit': String(LIMIT),
      'x-ratelimit-remaining': String(Math.max(0, LIMIT - count)),
      'x-ratelimit-reset': String((this.#start + WINDOW_MS) / 1_000),
    };
  }
}

const connections: Redis[] = [];
afterAll(() => {
  for (const connection of connections) connection.disconnect();
});

test('whatever the latencies and losses, no window holds more than the limit, and all go on', async () => {
  const { url } = await startTestRedis();
  const budgets = [0, 1].map(() => {
    const connection = new Redis(url);
    connections.push(connection);
    return new RateBudget(connection);
  });
  await Promise.all(
    Array.from({ length: COMPANIES }, (_, index) => useTheLimit(`company-${index}`, budgets)),
  );
});

async function useTheLimit(company: string, budgets: readonly RateBudget[]): Promise<void> {
  const model = new LimitModel();
  /** One request with a random time there and back; now and then it, or its answer, is lost on the way. */
  async function sendOne(budget: RateBudget, route: string): Promise<number> {
    const admission = await budget.acquire(company, route);
    if (admission.permit === undefined) return admission.waitMs;
    await sleep(Math.random() * 50);
    const fate = Math.random();
    const headers = fate < 0.02 ? undefined : model.answer();
    await sleep(Math.random() * 50);
    if (headers === undefined || fate > 0.98) {
      await budget.settle(admission.permit, {});
    } else {
      await budget.settle(admission.permit, { answer: { rate: readRateHeaders(headers, 0) } });
    }
    return 0;
  }

  await Promise.all(
    Array.from({ length: LOOPS }, async (_, index) => {
      const budget = budgets[index % budgets.length];
      while (budget !== undefined && model.perWindow.length <= WINDOWS) {
        await sleep(await sendOne(budget, index % 3 === 0 ? '/contacts' : '/conversations'));
      }
    }),
  );

  expect(model.refused).toBe(0);
  expect(Math.max(...model.perWindow)).toBeLessThanOrEqual(LIMIT);
}
