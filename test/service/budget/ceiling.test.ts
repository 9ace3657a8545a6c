import { expect, test } from 'vitest';
import { LEFT_TO_SYNC, RateBudget } from '../../../src/service/budget/rate-budget.ts';
import { modelBudget } from './model/model-budget.ts';
import { RESET, ROUTE, rate, startTestBudget } from './test-budget.ts';
import { virtualBudget } from './virtual-budget.ts';

const { frozen, budget, newCompany, takeAll } = await startTestBudget(process.env.PATH);

/** A company whose window ends so long after an answer that leaves so many, in a time that stands still. */
async function whileNothingPasses(remaining: number, endsInMs: number) {
  const { connection, budget: sync } = modelBudget(RESET - endsInMs);
  await sync.observe('company', rate(remaining, { endsInMs }));
  return { sync, calls: new RateBudget(connection, undefined, 'calls', LEFT_TO_SYNC), company: 'company' };
}

/** How many permits the sync gets, with as many kept for people as in the app, and what it is told then. */
async function takeAsTheSync(company: string, sync = new RateBudget(frozen)) {
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
  const { sync, company } = await whileNothingPasses(20, 30_000);
  const { granted, waitMs } = await takeAsTheSync(company, sync);
  expect(granted).toBe(18);
  // An answer's Date, in whole seconds, tells the end to a second.
  expect(waitMs).toBeGreaterThan(26_000);
  expect(waitMs).toBeLessThanOrEqual(28_000);
});

test('near its end the sync takes them too', async () => {
  const { sync, company } = await whileNothingPasses(20, 1_900);
  expect((await takeAsTheSync(company, sync)).granted).toBe(20);
});

test('of a small limit nothing is kept', async () => {
  expect((await takeAsTheSync(await newCompany(rate(10, { limit: 19 })))).granted).toBe(10);
});

test('calls of the own logic leave a tenth of a window to the sync, until shortly before its end', async () => {
  const { sync, calls, company } = await whileNothingPasses(60, 30_000);
  const { granted, waitMs } = await takeAsTheSync(company, calls);
  expect(granted).toBe(46);
  // An answer's Date, in whole seconds, tells the end to a second.
  expect(waitMs).toBeGreaterThan(26_000);
  expect(waitMs).toBeLessThanOrEqual(28_000);
  expect((await takeAsTheSync(company, sync)).granted).toBe(12);
  const ending = await whileNothingPasses(60, 1_900);
  expect((await takeAsTheSync(company, ending.calls)).granted).toBe(60);
});

test('so they do where nothing is told of the limit', async () => {
  const calls = new RateBudget(frozen, undefined, 'more calls', LEFT_TO_SYNC);
  const company = await newCompany();
  const { permit } = await calls.acquire(company, ROUTE);
  if (permit === undefined) throw new Error('no permit for the first request');
  await calls.settle(permit, { answer: { rate: undefined } });
  // Besides those that are kept: the first one, and the one that asked whose token it is.
  expect((await takeAsTheSync(company, calls)).granted).toBe(120 - 14 - 2);
  expect((await takeAsTheSync(company)).granted).toBe(12);
});

test.each<[string, boolean]>([
  ['is under way still', false],
  ['was lost meanwhile', true],
])(
  'where nothing is told of the limit, a first request that %s counts, beside the one that was answered and the one that asked whose token it is',
  async (_what, isLost) => {
    const { budget, company, pass, acquire } = virtualBudget();
    const first = await acquire();
    // It may be dead: another one goes.
    pass(2_001);
    const second = await acquire();
    pass(10);
    if (isLost) await budget.settle(first, {});
    await budget.settle(second, { answer: { rate: undefined } });
    let granted = 0;
    while ((await budget.acquire(company, ROUTE)).permit !== undefined) granted++;
    expect(granted).toBe(120 - 3);
  },
);
