import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LateSettlements } from '../../../src/service/budget/late-settlements.ts';
import type { Permit, Settlement } from '../../../src/service/budget/rate-budget.ts';
import { EVERY_REDIS, OTHER_ROUTE, ROUTE, rate, startTestBudget } from './test-budget.ts';

const PERMIT: Permit = { id: 'one', company: 'company', route: ROUTE, goodUntil: Infinity };
const ANSWERED: Settlement = { answer: { rate: rate(100) } };

describe('a settlement that nobody waits for', () => {
  const settled: { permit: Permit; settlement: Settlement }[] = [];
  let late: LateSettlements;

  beforeEach(() => {
    vi.useFakeTimers();
    settled.length = 0;
    late = new LateSettlements((permit, settlement) => settled.push({ permit, settlement }));
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('is kept for two seconds, then settled with how late it is', () => {
    expect(late.keep(PERMIT, ANSWERED)).toBe(true);
    vi.advanceTimersByTime(1_999);
    expect(settled).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(settled).toEqual([{ permit: PERMIT, settlement: { ...ANSWERED, lateByMs: 2_000 } }]);
  });

  it('is handed out once, for its company and route', () => {
    late.keep(PERMIT, ANSWERED);
    vi.advanceTimersByTime(300);
    expect(late.take('company', OTHER_ROUTE)).toBeUndefined();
    expect(late.take('another', ROUTE)).toBeUndefined();
    expect(late.take('company', ROUTE)).toEqual({
      permit: PERMIT,
      settlement: { ...ANSWERED, lateByMs: 300 },
    });
    expect(late.take('company', ROUTE)).toBeUndefined();
    vi.advanceTimersByTime(10_000);
    expect(settled).toEqual([]);
  });

  it('keeps one of a company and route: the second is the caller’s', () => {
    late.keep(PERMIT, ANSWERED);
    expect(late.keep({ ...PERMIT, id: 'two' }, ANSWERED)).toBe(false);
    expect(late.keep({ ...PERMIT, id: 'three', route: OTHER_ROUTE }, ANSWERED)).toBe(true);
  });

  it.each<{ what: string; permit?: Partial<Permit>; settlement?: Settlement }>([
    { what: 'a probe’s, which finds out about the window', permit: { isProbe: true } },
    { what: 'a guard’s bucket', permit: { bucket: { name: 'one', tier: '2', limit: 1, windowMs: 5_000 } } },
    { what: 'an answer without the limit', settlement: { answer: { rate: undefined } } },
    { what: 'no answer', settlement: {} },
    { what: 'a request that was not sent', settlement: { unsent: true } },
    { what: 'a refusal', settlement: { ...ANSWERED, block: { forMs: 1_000, of: 'company' } } },
    { what: 'fewer than a tenth of the permits left', settlement: { answer: { rate: rate(11) } } },
    { what: 'a window that ends soon', settlement: { answer: { rate: rate(100, { endsInMs: 2_999 }) } } },
  ])('is none where others may wait for it: $what', ({ permit, settlement }) => {
    expect(late.keep({ ...PERMIT, ...permit }, settlement ?? ANSWERED)).toBe(false);
    vi.advanceTimersByTime(10_000);
    expect(settled).toEqual([]);
  });
});

describe.each(EVERY_REDIS)('a budget on $what', async ({ searchPath }) => {
  const { budget, newCompany, acquire, refusal, pass, stateOf, flightOf } = await startTestBudget(searchPath);

  it('settles late together with the next permit of the company and route', async () => {
    const company = await newCompany(rate(100));
    const first = await acquire(company);
    await budget.settleSoon(first, { answer: { rate: rate(98) } });
    expect(await flightOf(company)).toEqual([first.id]);
    expect((await budget.read(company)).remaining).toBe(100);
    const other = await acquire(company, OTHER_ROUTE);
    expect(await flightOf(company)).toEqual([first.id, other.id]);
    const second = await acquire(company);
    expect(await flightOf(company)).toEqual([other.id, second.id]);
    expect((await budget.read(company)).remaining).toBe(98);
  });

  it('settles late when it is told to, and what others wait for at once', async () => {
    const company = await newCompany(rate(100));
    await budget.settleSoon(await acquire(company), { answer: { rate: rate(99) } });
    expect(await flightOf(company)).toHaveLength(1);
    await budget.settleLate(company, ROUTE);
    expect(await flightOf(company)).toEqual([]);
    await budget.settleSoon(await acquire(company), { answer: { rate: rate(5) } });
    expect(await flightOf(company)).toEqual([]);
    expect((await budget.read(company)).remaining).toBe(5);
  });

  it('counts what is settled late as spent meanwhile, and not twice afterwards', async () => {
    const company = await newCompany(rate(2, { limit: 10 }));
    await budget.settleSoon(await acquire(company), { answer: { rate: rate(1, { limit: 10 }) } });
    const last = await acquire(company, OTHER_ROUTE);
    expect((await refusal(company, OTHER_ROUTE)).why).toBe('limit');
    await budget.settle(last, { answer: { rate: rate(0, { limit: 10 }) } });
    await budget.settleLate(company, ROUTE);
    expect((await budget.read(company)).remaining).toBe(0);
  });

  it('takes the end of the window from when the answer came', async () => {
    const ends = [];
    for (const lateByMs of [200, 0]) {
      const company = await newCompany();
      const probe = await acquire(company);
      expect(probe.isProbe).toBe(true);
      pass(200);
      await budget.settle(probe, { answer: { rate: rate(100) }, lateByMs });
      expect((await acquire(company)).isProbe).toBeUndefined();
      ends.push((await stateOf(company)).end);
    }
    // The second window came into sight 200 ms after the first one, and its answer is not late.
    expect((ends[1] ?? 0) - (ends[0] ?? 0)).toBeGreaterThanOrEqual(400);
  });
});
