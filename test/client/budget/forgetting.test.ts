import { expect, test } from 'vitest';
import { ROUTE, rate, startTestBudget } from './test-budget.ts';

const HALF_AN_HOUR_MS = 30 * 60_000;
const { redis, budget, newCompany, acquire, refusal } = await startTestBudget(process.env.PATH);

/** Milliseconds until each key of a company is forgotten, by what is behind its name. */
async function lives(company: string): Promise<Record<string, number>> {
  const name = `budget:{${company}}`;
  const keys = await redis.keys(`${name.replace(/[{}]/g, '?')}*`);
  const entries = keys.map(async (key) => [key.slice(name.length), await redis.pttl(key)] as const);
  return Object.fromEntries(await Promise.all(entries));
}

test.each([
  ['an answer', { answer: { rate: rate(100) } }],
  ['an answer without a word about the limit', { answer: { rate: undefined } }],
  ['none', {}],
  ['a request that was not sent', { unsent: true }],
])(
  'of a company that is idle after %s, everything is forgotten in half an hour',
  async (_what, settlement) => {
    const company = await newCompany(rate(110));
    for (let request = 0; request < 3; request++) await budget.settle(await acquire(company), settlement);
    const [first, second] = [await acquire(company), await acquire(company)];
    for (const permit of [first, second]) await budget.settle(permit, settlement);
    for (const [key, ms] of Object.entries(await lives(company))) {
      expect(ms, key).toBeGreaterThan(0);
      expect(ms, key).toBeLessThanOrEqual(HALF_AN_HOUR_MS);
    }
  },
);

test('what a route is blocked for is known as long, whatever else is forgotten', async () => {
  const company = await newCompany(rate(100));
  const block = { forMs: 2 * HALF_AN_HOUR_MS, bucketOnly: true };
  await budget.settle(await acquire(company), { answer: { rate: rate(99) }, block });
  await redis.del(`budget:{${company}}`);
  expect(await refusal(company)).toMatchObject({ why: 'blocked' });
  // Another route goes on, and puts nothing of that off.
  await budget.settle(await acquire(company, '/tags'), { answer: { rate: rate(98) } });
  expect((await refusal(company, ROUTE)).waitMs).toBeGreaterThan(HALF_AN_HOUR_MS * 1.9);
});
