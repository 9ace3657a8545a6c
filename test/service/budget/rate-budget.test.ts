import { describe, expect, it } from 'vitest';
import { EVERY_REDIS, RESET, ROUTE, rate, startTestBudget, WINDOW_MS } from './test-budget.ts';

describe.each(EVERY_REDIS)('the budget on $what', async ({ searchPath }) => {
  const { redis, budget, sibling, newCompany, acquire, refusal, now, pass, takeAll, expire } =
    await startTestBudget(searchPath);

  describe('in a window that is known', () => {
    it('grants what remains and not one more; the rest waits for its end', async () => {
      const company = await newCompany(rate(5));
      expect((await takeAll(company)).length).toBe(5);
      const { why, waitMs } = await refusal(company);
      expect(why).toBe('limit');
      expect(waitMs).toBeLessThanOrEqual(30_000);
      expect(waitMs).toBeGreaterThan(25_000);
    });

    it('counts permits in flight against what the answers say', async () => {
      const company = await newCompany(rate(5));
      const first = await acquire(company);
      await acquire(company);
      await acquire(company);
      await budget.settle(first, { answer: { rate: rate(4) } });
      expect((await takeAll(company)).length).toBe(2);
    });

    it('takes the smallest of its answers, in whatever order they come', async () => {
      const company = await newCompany(rate(9));
      const [first, second, third] = [await acquire(company), await acquire(company), await acquire(company)];
      await budget.settle(third, { answer: { rate: rate(6) } });
      await budget.settle(first, { answer: { rate: rate(8) } });
      await budget.settle(second, { answer: { rate: rate(7) } });
      expect((await budget.read(company)).remaining).toBe(6);
      expect((await takeAll(company)).length).toBe(6);
    });

    it('takes the earliest of the ends that its answers show, and the same window by its name, to rounding', async () => {
      const company = await newCompany(rate(9, { endsInMs: 30_000 }));
      await budget.settle(await acquire(company), { answer: { rate: rate(8, { endsInMs: 28_200 }) } });
      const cut = rate(7, { resetMs: RESET - 999, endsInMs: 29_000 });
      await budget.settle(await acquire(company), { answer: { rate: cut } });
      await takeAll(company);
      const { waitMs } = await refusal(company);
      expect(waitMs).toBeLessThanOrEqual(28_200);
      expect(waitMs).toBeGreaterThan(25_000);
    });

    it('ignores an answer about an older window', async () => {
      const company = await newCompany(rate(2));
      const late = await acquire(company);
      await budget.settle(await acquire(company), {
        answer: { rate: rate(100, { resetMs: RESET + WINDOW_MS }) },
      });
      await budget.settle(late, { answer: { rate: rate(0, { limit: 7 }) } });
      expect(await budget.read(company)).toMatchObject({ remaining: 100, limit: 120 });
    });

    it('takes up a newer window at once', async () => {
      const company = await newCompany(rate(1));
      const permit = await acquire(company);
      await refusal(company);
      await budget.settle(permit, { answer: { rate: rate(3, { resetMs: RESET + WINDOW_MS }) } });
      expect((await takeAll(company)).length).toBe(3);
    });

    it('counts a request without an answer as spent', async () => {
      const company = await newCompany(rate(3));
      await budget.settle(await acquire(company), {});
      expect((await takeAll(company)).length).toBe(2);
    });

    it('counts a request without an answer, which the service may have counted after one whose answer comes later', async () => {
      const company = await newCompany(rate(9));
      const [lost, answered] = [await acquire(company), await acquire(company)];
      await budget.settle(lost, {});
      await budget.settle(answered, { answer: { rate: rate(8) } });
      expect((await budget.read(company)).remaining).toBe(7);
      expect((await takeAll(company)).length).toBe(7);
    });

    it('counts an answer without the limit’s headers as spent', async () => {
      const company = await newCompany(rate(3));
      await budget.settle(await acquire(company), { answer: { rate: undefined } });
      expect((await takeAll(company)).length).toBe(2);
    });

    it('counts the permits of a dead holder as spent, once', async () => {
      const company = await newCompany(rate(5));
      const [first, second] = [await acquire(company), await acquire(company)];
      await expire(first, second);
      expect((await takeAll(company)).length).toBe(3);
      await budget.settle(first, {});
      expect((await budget.read(company)).remaining).toBe(3);
    });

    it('has no idea of it any more when its time is over, and the wait for that is not too short', async () => {
      const company = await newCompany(rate(0, { endsInMs: 250 }));
      pass((await refusal(company)).waitMs);
      await acquire(company);
      expect(await budget.read(company)).toMatchObject({
        limit: 120,
        remaining: undefined,
        resetAt: undefined,
      });
    });
  });

  describe('when a window has just ended', () => {
    it('lets a sixtieth of its limit go into the new one, until that tells of itself', async () => {
      const company = await newCompany(rate(0, { endsInMs: 250 }));
      pass((await refusal(company)).waitMs);
      const permits = await takeAll(company);
      expect(permits.length).toBe(2);
      expect((await refusal(company)).why).toBe('probe');
      for (const permit of permits.slice(0, 1)) {
        await budget.settle(permit, { answer: { rate: rate(9, { resetMs: RESET + WINDOW_MS }) } });
      }
      expect((await takeAll(company)).length).toBe(8);
    });

    it('asks with one request alone where the limit is small', async () => {
      const company = await newCompany(rate(0, { limit: 119, endsInMs: 250 }));
      pass((await refusal(company)).waitMs);
      expect((await takeAll(company)).length).toBe(1);
    });
  });

  describe('when nothing is known', () => {
    it('lets one request go and find out, while the others wait a moment', async () => {
      const company = await newCompany();
      const admissions = await Promise.all(
        Array.from({ length: 10 }, (_, index) => (index % 2 ? budget : sibling).acquire(company, ROUTE)),
      );
      const granted = admissions.flatMap(({ permit }) => permit ?? []);
      expect(granted.length).toBe(1);
      const refused = admissions.filter((admission) => admission.permit === undefined);
      expect(refused).toHaveLength(9);
      for (const admission of refused) {
        expect(admission).toEqual({ permit: undefined, why: 'probe', waitMs: expect.any(Number) });
        expect(admission.waitMs).toBeGreaterThanOrEqual(2);
        expect(admission.waitMs).toBeLessThanOrEqual(50);
      }

      for (const permit of granted) await budget.settle(permit, { answer: { rate: rate(4) } });
      expect((await takeAll(company)).length).toBe(4);
    });

    it('lets another one go when the first came to nothing', async () => {
      const company = await newCompany();
      await budget.settle(await acquire(company), {});
      await acquire(company);
      await refusal(company);
    });

    it('lets another one go when the holder of the first is dead', async () => {
      const company = await newCompany();
      await expire(await acquire(company));
      await acquire(company);
      await refusal(company);
    });

    it('takes the contract’s 120 a minute when the service says nothing about its limit', async () => {
      const company = await newCompany();
      await budget.settle(await acquire(company), { answer: { rate: undefined } });
      expect((await takeAll(company)).length).toBe(118);
      const { why, waitMs } = await refusal(company);
      expect(why).toBe('limit');
      expect(waitMs).toBeGreaterThan(59_000);
      expect(waitMs).toBeLessThanOrEqual(60_000);
    });

    it.each([
      [50, 48],
      [1, 0],
      [500, 118],
    ])('takes the limit when the service tells it, %d, and not what is left', async (limit, left) => {
      const company = await newCompany();
      await budget.settle(await acquire(company), { answer: { rate: undefined, toldLimit: limit } });
      expect((await takeAll(company)).length).toBe(left);
      expect((await budget.read(company)).limit).toBe(Math.min(limit, 120));
    });

    it('believes the service as soon as it says something', async () => {
      const company = await newCompany();
      await budget.settle(await acquire(company), { answer: { rate: undefined } });
      await budget.settle(await acquire(company), { answer: { rate: rate(2) } });
      expect((await takeAll(company)).length).toBe(2);
    });
  });

  describe('when a window ends while requests are under way', () => {
    it('counts a lost request in the next window too, as it may have come to the service there', async () => {
      const company = await newCompany(rate(5, { endsInMs: 250 }));
      const straggler = await acquire(company);
      await takeAll(company);
      pass((await refusal(company)).waitMs);
      const probe = await acquire(company);
      await budget.settle(straggler, {});
      // The probe was counted first, so its answer does not know of the straggler.
      await budget.settle(probe, { answer: { rate: rate(10, { resetMs: RESET + WINDOW_MS }) } });
      // Four of the old window are under way still.
      expect((await takeAll(company)).length).toBe(10 - 1 - 4);
    });

    it('does not count a request that was lost before the one that tells of the window was sent', async () => {
      const company = await newCompany(rate(1, { endsInMs: 250 }));
      const lost = await acquire(company);
      pass((await refusal(company)).waitMs);
      await budget.settle(lost, {});
      pass(1);
      const probe = await acquire(company);
      await budget.settle(probe, { answer: { rate: rate(10, { resetMs: RESET + WINDOW_MS }) } });
      expect((await takeAll(company)).length).toBe(10);
    });
  });

  it('is one for all processes', async () => {
    const company = await newCompany(rate(10));
    const admissions = await Promise.all(
      Array.from({ length: 30 }, (_, index) => (index % 2 ? budget : sibling).acquire(company, ROUTE)),
    );
    const granted = admissions.flatMap(({ permit }) => permit ?? []);
    expect(granted.length).toBe(10);
    for (const permit of granted.slice(0, 1)) {
      await sibling.settle(permit, { answer: { rate: rate(9, { resetMs: RESET + WINDOW_MS }) } });
    }
    expect((await budget.read(company)).remaining).toBe(9);
  });

  it('keeps companies apart', async () => {
    const [poor, rich] = [await newCompany(rate(0)), await newCompany(rate(1))];
    await refusal(poor);
    await acquire(rich);
  });

  it('tells what it knows', async () => {
    const company = await newCompany();
    expect(await budget.read(company)).toEqual({
      limit: undefined,
      remaining: undefined,
      resetAt: undefined,
      burstRemaining: undefined,
      blockedUntil: undefined,
    });
    await budget.observe(company, rate(77, { limit: 100, burstRemaining: 50 }));
    const state = await budget.read(company);
    expect(state).toMatchObject({ limit: 100, remaining: 77, burstRemaining: 50, blockedUntil: undefined });
    expect(state.resetAt).toBe(now() + 30_000);
  });

  it('never shows less than nothing', async () => {
    const company = await newCompany(rate(1));
    const permit = await acquire(company);
    await budget.observe(company, rate(0));
    await budget.settle(permit, {});
    expect((await budget.read(company)).remaining).toBe(0);
  });

  it('forgets a company that is idle for half an hour', async () => {
    const company = await newCompany(rate(5));
    await acquire(company);
    await budget.settle(await acquire(company), {});
    for (const what of ['state', 'unheard', 'counted']) {
      const key = `budget:{${company}}:${what}`;
      const ttlMs = await redis.pttl(key);
      expect(ttlMs).toBeGreaterThan(29 * 60_000);
      expect(ttlMs).toBeLessThanOrEqual(30 * 60_000);
    }
  });
});
