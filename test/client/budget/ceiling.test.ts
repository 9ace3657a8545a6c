import { expect, test } from 'vitest';
import { RateBudget } from '../../../src/client/budget/rate-budget.ts';
import { ROUTE, rate, startTestBudget } from './test-budget.ts';

const { redis, budget, newCompany, takeAll } = await startTestBudget(process.env.PATH);

/** How many permits the sync gets, with as many kept for people as in the app, and what it is told then. */
async function takeAsTheSync(company: string) {
  const sync = new RateBudget(redis);
  for (let granted = 0; ; granted++) {
    const admission = await sync.acquire(company, ROUTE);
    if (admission.permit === undefined) return { granted, waitMs: admission.waitMs };
  }
}

test('a service that would allow more is asked for no more than 120 in a window', async () => {
  const company = await newCompany(rate(999, { limit: 1_000 }));
  expect((await takeAll(company)).length).toBe(119);
  expect((await budget.read(company)).limit).toBe(120);
});

test('a service that allows less is believed', async () => {
  expect((await takeAll(await newCompany(rate(29, { limit: 30 })))).length).toBe(29);
});

test('the sync leaves two of 120 for people, until shortly before the end of the window', async () => {
  const company = await newCompany(rate(20, { endsInMs: 30_000 }));
  const { granted, waitMs } = await takeAsTheSync(company);
  expect(granted).toBe(18);
  expect(waitMs).toBeGreaterThan(26_000);
  expect(waitMs).toBeLessThanOrEqual(28_000);
});

test('near its end the sync takes them too', async () => {
  expect((await takeAsTheSync(await newCompany(rate(20, { endsInMs: 1_900 })))).granted).toBe(20);
});

test('of a small limit nothing is kept', async () => {
  expect((await takeAsTheSync(await newCompany(rate(10, { limit: 19 })))).granted).toBe(10);
});
