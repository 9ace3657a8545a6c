import { describe, expect, it } from 'vitest';
import { EVERY_REDIS, ROUTE, rate, startTestBudget } from './test-budget.ts';

describe.each(EVERY_REDIS)('an exchange of permits on $what', async ({ searchPath }) => {
  const { redis, budget, newCompany, acquire, flightOf } = await startTestBudget(searchPath);

  it('settles the one before it grants the other, in one call', async () => {
    const company = await newCompany(rate(1));
    const first = await acquire(company);
    const calls = async () =>
      Number(/cmdstat_evalsha:calls=(\d+)/.exec(await redis.info('commandstats'))?.[1]);
    const before = await calls();
    const next = await budget.exchange(first, { unsent: true });
    if (!Number.isNaN(before)) expect((await calls()) - before).toBe(1);
    expect(next.permit).toMatchObject({ company, route: ROUTE });
    expect(next.permit?.id).not.toBe(first.id);
    expect(await flightOf(company)).toEqual([next.permit?.id]);
  });

  it('tells how long to wait for the other, with the first one settled', async () => {
    const company = await newCompany(rate(1));
    const admission = await budget.exchange(await acquire(company), { answer: { rate: rate(0) } });
    expect(admission).toMatchObject({ permit: undefined, why: 'limit' });
    expect(await flightOf(company)).toEqual([]);
    expect((await budget.read(company)).remaining).toBe(0);
  });

  it('stays in the bucket of the guard', async () => {
    const bucket = { name: 'one', tier: '2', limit: 1, windowMs: 5_000 };
    const company = await newCompany(rate(9));
    const { permit } = await budget.acquire(company, ROUTE, bucket);
    if (permit === undefined) throw new Error('no permit');
    expect(await budget.exchange(permit, { answer: { rate: rate(8) } })).toMatchObject({ why: 'guard' });
  });
});
