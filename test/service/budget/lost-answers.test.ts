import { describe, expect, it } from 'vitest';
import { CountWatch } from '../../../src/service/budget/count-watch.ts';
import { RateBudget } from '../../../src/service/budget/rate-budget.ts';
import { EVERY_REDIS, RESET, ROUTE, rate, startTestBudget, WINDOW_MS } from './test-budget.ts';

describe.each(EVERY_REDIS)('what Redis knows of a limit on $what', async ({ searchPath }) => {
  const test = await startTestBudget(searchPath);
  const { redis, budget, sibling, acquire, refusal, newCompany, pass, step, flightOf } = test;

  const reconnect = () => redis.disconnect(true);

  /** One of a process goes, no other until its answer. */
  async function expectOneToFindOut(company: string, by: RateBudget = budget): Promise<void> {
    const permit = await acquire(company, ROUTE, by);
    expect((await refusal(company, ROUTE, by)).why).toBe('probe');
    pass(100);
    await by.settle(permit, { answer: { rate: rate(85) } });
    for (let granted = 0; granted < 3; granted++) await acquire(company, ROUTE, by);
  }

  /** What several ask for at once, just when it happens, is granted before any of them is answered: nobody gets it. */
  async function expectNoneOfSeveral(company: string, happen: () => void): Promise<void> {
    const before = await flightOf(company);
    pass(100);
    happen();
    const several = [1, 2, 3].map(() => budget.acquire(company, ROUTE));
    for (const one of await Promise.all(several))
      expect(one).toMatchObject({ permit: undefined, why: 'probe' });
    expect(await flightOf(company)).toEqual(before);
  }

  it('is as good as ever while time passes as usual, and for whoever began before the last answer', async () => {
    const company = await newCompany(rate(100));
    await redis.ping();
    pass(10 * WINDOW_MS);
    await budget.observe(company, rate(100, { resetMs: RESET + 10 * WINDOW_MS }));
    for (const by of [budget, sibling, budget]) await acquire(company, ROUTE, by);
  });

  it('may be of some time ago where a connection is new: one request finds out', async () => {
    const company = await newCompany(rate(100));
    await acquire(company);
    await expectNoneOfSeveral(company, reconnect);
    await expectOneToFindOut(company);
  });

  it('may be so for a process that has just begun', async () => {
    const company = await newCompany(rate(100));
    pass(100);
    const watch = new CountWatch(test.frozen, test.steadyNow);
    await expectOneToFindOut(company, new RateBudget(test.frozen, 0, undefined, 0, watch));
  });

  it('is not over where its clock was set forward', async () => {
    const company = await newCompany(rate(0));
    expect((await refusal(company)).why).toBe('limit');
    await expectNoneOfSeveral(company, () => step(WINDOW_MS + 10_000));
    await expectOneToFindOut(company);
  });

  it('is no newer for an answer to a request that went before', async () => {
    const company = await newCompany(rate(100));
    const [before, lost] = [await acquire(company), await acquire(company)];
    await expectNoneOfSeveral(company, reconnect);
    pass(100);
    await budget.settle(before, { answer: { rate: rate(90) } });
    await budget.settle({ ...lost, id: 'forgotten' }, { answer: { rate: rate(89) } });
    await expectOneToFindOut(company);
  });

  it('is found out by another one where the first gets no answer', async () => {
    const company = await newCompany(rate(100));
    await expectNoneOfSeveral(company, reconnect);
    await budget.settle(await acquire(company), {});
    await expectOneToFindOut(company);
  });

  it('is found out by an answer that says nothing of it, too', async () => {
    const company = await newCompany(rate(100));
    await expectNoneOfSeveral(company, reconnect);
    await budget.settle(await acquire(company), { answer: { rate: undefined } });
    for (let granted = 0; granted < 3; granted++) await acquire(company);
  });
});
