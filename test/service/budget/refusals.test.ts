import { describe, expect, it } from 'vitest';
import { LONGEST_RETRY_AFTER_MS } from '../../../src/service/retry-timing.ts';
import { writeBudgetState } from '../../support/budget-state.ts';
import { EVERY_REDIS, OTHER_ROUTE, ROUTE, rate, startTestBudget } from './test-budget.ts';

describe.each(EVERY_REDIS)('a service that refuses, on $what', async ({ searchPath }) => {
  const { redis, budget, newCompany, acquire, refusal, now, pass, stateOf } =
    await startTestBudget(searchPath);

  it('blocks the company for as long as it says', async () => {
    const company = await newCompany(rate(50));
    const permit = await acquire(company);
    await budget.settle(permit, {
      answer: { rate: rate(49) },
      block: { forMs: 7_000, of: 'company' as const },
    });
    for (const route of [ROUTE, OTHER_ROUTE]) {
      const { why, waitMs } = await refusal(company, route);
      expect(why).toBe('blocked');
      expect(waitMs).toBe(7_000);
    }
    expect((await budget.read(company)).blockedUntil).toBe(now() + 7_000);
  });

  it('blocks one route alone when a guard refuses', async () => {
    const company = await newCompany(rate(50));
    const permit = await acquire(company);
    await budget.settle(permit, {
      answer: { rate: rate(49) },
      block: { forMs: 7_000, of: 'bucket' as const },
    });
    expect((await refusal(company, ROUTE)).why).toBe('blocked');
    await acquire(company, OTHER_ROUTE);
    expect((await budget.read(company)).blockedUntil).toBeUndefined();
  });

  it('in trouble holds the company for a minute at the most, the route for as long as it says', async () => {
    const company = await newCompany(rate(50));
    const block = { forMs: 300_000, of: 'trouble' } as const;
    await budget.settle(await acquire(company), { answer: { rate: rate(49) }, block });
    expect(await refusal(company, OTHER_ROUTE)).toMatchObject({ why: 'blocked', waitMs: 60_000 });
    expect(await refusal(company, ROUTE)).toMatchObject({ why: 'blocked', waitMs: 300_000 });
    pass(60_000);
    await acquire(company, OTHER_ROUTE);
    expect(await refusal(company, ROUTE)).toMatchObject({ why: 'blocked', waitMs: 240_000 });
  });

  it('in trouble on one route again and again, while another is well, holds that route alone', async () => {
    const company = await newCompany(rate(50));
    const block = { forMs: 7_000, of: 'trouble' } as const;
    const meetTrouble = async () =>
      budget.settle(await acquire(company), { answer: { rate: rate(45), isRefusal: true }, block });
    await meetTrouble();
    pass(7_000);
    // Nothing says that another one is well: it may be all of the service.
    await meetTrouble();
    expect((await refusal(company, OTHER_ROUTE)).why).toBe('blocked');
    pass(7_000);
    await budget.settle(await acquire(company, OTHER_ROUTE), { answer: { rate: rate(44) } });
    await meetTrouble();
    expect(await refusal(company, ROUTE)).toMatchObject({ why: 'blocked', waitMs: 7_000 });
    await budget.settle(await acquire(company, OTHER_ROUTE), { answer: { rate: rate(43) } });
    // It learns no pace from that: nothing was too fast.
    pass(7_000);
    await Promise.all([acquire(company), acquire(company)]);
  });

  it('does not let a shorter block end a longer one', async () => {
    const company = await newCompany(rate(50));
    const [first, second] = [await acquire(company), await acquire(company)];
    await budget.settle(first, {
      answer: { rate: rate(49) },
      block: { forMs: 20_000, of: 'company' as const },
    });
    await budget.settle(second, {
      answer: { rate: rate(48) },
      block: { forMs: 1_000, of: 'company' as const },
    });
    expect((await refusal(company)).waitMs).toBeGreaterThan(15_000);
  });

  it('is not forgotten before the longest wait that it may ask for is over', async () => {
    const company = await newCompany(rate(50));
    const permit = await acquire(company);
    await budget.settle(permit, { block: { forMs: LONGEST_RETRY_AFTER_MS, of: 'company' as const } });
    const keptForMs = await redis.pttl(`budget:{${company}}:state`);
    expect(keptForMs).toBeGreaterThan((await refusal(company)).waitMs);
  });

  it('keeps a guard’s block of hours, also where nobody asks meanwhile', async () => {
    const company = await newCompany(rate(50));
    const forMs = 3 * 60 * 60_000;
    await budget.settle(await acquire(company), {
      answer: { rate: rate(49) },
      block: { forMs, of: 'bucket' },
    });
    expect(await redis.pttl(`budget:{${company}}:state`)).toBeGreaterThan(forMs - 60_000);
    expect(await refusal(company)).toMatchObject({ why: 'blocked', waitMs: forMs });
  });

  it('is asked once when the longest wait is over, and then waited for again', async () => {
    const company = await newCompany(rate(50));
    const block = { forMs: LONGEST_RETRY_AFTER_MS, of: 'company' } as const;
    await budget.settle(await acquire(company), { answer: { rate: rate(49), isRefusal: true }, block });
    for (let round = 0; round < 3; round++) {
      pass((await refusal(company)).waitMs);
      const probe = await acquire(company);
      for (const route of [ROUTE, OTHER_ROUTE]) expect((await refusal(company, route)).why).toBe('probe');
      await budget.settle(probe, { answer: { rate: undefined, isRefusal: true }, block });
      for (const route of [ROUTE, OTHER_ROUTE]) {
        expect(await refusal(company, route)).toMatchObject({ why: 'blocked', waitMs: block.forMs });
      }
    }
  });

  it('goes on when the block is over', async () => {
    const company = await newCompany(rate(50));
    const permit = await acquire(company);
    await budget.settle(permit, {
      answer: { rate: rate(49) },
      block: { forMs: 250, of: 'company' as const },
    });
    pass((await refusal(company)).waitMs);
    await acquire(company);
  });

  it('takes refusals of requests that were on their way together for one', async () => {
    for (const of of ['company', 'bucket', 'request', 'trouble'] as const) {
      const company = await newCompany(rate(100));
      const permits = await Promise.all(Array.from({ length: 12 }, () => acquire(company)));
      const block = { forMs: 300, of };
      for (const permit of permits) await budget.settle(permit, { answer: { rate: rate(50) }, block });
      expect((await refusal(company)).waitMs).toBeLessThanOrEqual(300);
    }
  });

  it('waits longer with every refusal in a row, and not any more after an answer', async () => {
    const company = await newCompany(rate(100));
    const block = { forMs: 1, of: 'company' as const };
    const permits = [];
    for (let index = 0; index < 14; index++) permits.push(await acquire(company));
    const pauses = [50, 100, 200, 400, 800, 1_600, 3_200, 6_400, 12_800, 25_600, 30_000, 30_000];
    for (const [index, pause] of pauses.entries()) {
      const permit = permits[index];
      if (permit !== undefined) await budget.settle(permit, { answer: { rate: rate(50) }, block });
      const { blocked, ...state } = await stateOf(company);
      expect(blocked).toBeGreaterThanOrEqual(now() + pause);
      expect(blocked).toBeLessThanOrEqual(now() + pause + 1);
      await writeBudgetState(redis, company, state);
    }
    const [good, bad] = permits.slice(12);
    if (good !== undefined) await budget.settle(good, { answer: { rate: rate(49) } });
    if (bad !== undefined) await budget.settle(bad, { answer: { rate: rate(48) }, block });
    expect((await refusal(company)).waitMs).toBeLessThanOrEqual(50);
  });
});
