import { expect, test } from 'vitest';
import { rate, startTestBudget } from './test-budget.ts';
import { virtualBudget } from './virtual-budget.ts';

const HALF_AN_HOUR_MS = 30 * 60_000;
const { redis, budget, newCompany, acquire } = await startTestBudget(process.env.PATH);

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

test('the block of a route is forgotten with the next one after its end, and puts none of another route off', async () => {
  const { request, refusal, pass, answer, blocks } = virtualBudget();
  const blocked = (forMs: number) => ({ ...answer(99), block: { forMs, of: 'bucket' as const } });
  await request(blocked(1_000));
  await request(blocked(5_000), '/tags');
  expect((await refusal()).waitMs).toBe(990);
  pass(1_000);
  await request(blocked(1_000), '/companies');
  expect(Object.keys(blocks()).sort()).toEqual(['/companies', '/tags']);
});
