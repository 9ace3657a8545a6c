import { describe, expect, it } from 'vitest';
import { RESET, rate } from './rate.ts';
import { virtualBudget } from './virtual-budget.ts';

describe('when Redis’ clock is set', () => {
  it('back, what was a moment ahead is no more than that ahead', async () => {
    const { budget, company, pass, acquire, refusal, request, answer } = virtualBudget();
    await request(answer(1));
    await acquire();
    expect((await refusal()).waitMs).toBe(30_000);
    pass(-90_000);
    expect((await refusal()).waitMs).toBe(30_000);
    pass(29_999);
    expect((await refusal()).waitMs).toBe(1);
    pass(1);
    await acquire();
    expect((await budget.read(company)).resetAt).toBeUndefined();
  });

  it('back, a block lasts no longer than it would have', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    await request({ ...answer(50), block: { forMs: 4_000, of: 'company' } });
    pass(-3_600_000);
    expect((await refusal()).waitMs).toBe(4_000);
    pass(4_000);
    await acquire();
  });

  it('forward, the next answer shows that the window is not over so soon', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    await request(answer(3, 30_000));
    pass(20_000);
    await request(answer(2, 29_000));
    await acquire();
    await acquire();
    expect((await refusal()).waitMs).toBe(29_000);
  });
});

describe('when the service’s clock is set', () => {
  it('back, the answer to a request that went since tells of the present window', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    await request(answer(5));
    pass(10);
    await request(answer(2, 20_000, RESET - 50_000));
    await acquire();
    await acquire();
    expect((await refusal()).waitMs).toBe(20_000);
  });
});

describe('when the limit changes in the window', () => {
  it('up, what is used counts against the new one', async () => {
    const { budget, company, pass, request } = virtualBudget();
    await request({ answer: { rate: rate(8, { limit: 10 }) } });
    pass(10);
    await request({ answer: { rate: rate(17, { limit: 20 }) } });
    expect(await budget.read(company)).toMatchObject({ limit: 20, remaining: 17 });
  });

  it('down, an answer that was on its way before does not bring it back', async () => {
    const { budget, company, acquire, request, pass } = virtualBudget();
    await request({ answer: { rate: rate(19, { limit: 20 }) } });
    const early = await acquire();
    pass(10);
    await request({ answer: { rate: rate(7, { limit: 10 }) } });
    await budget.settle(early, { answer: { rate: rate(18, { limit: 20 }) } });
    expect(await budget.read(company)).toMatchObject({ limit: 10, remaining: 7 });
  });
});

describe('while a probe is out', () => {
  it('the others ask again soon, and later the longer it takes', async () => {
    const { pass, acquire, refusal } = virtualBudget();
    await acquire();
    const pauses: number[] = [];
    for (const ms of [0, 20, 80, 400]) {
      pass(ms);
      pauses.push((await refusal()).waitMs);
    }
    expect(pauses).toEqual([2, 5, 25, 50]);
  });

  it('another one goes after two seconds: the first one’s holder may be dead', async () => {
    const { pass, acquire, refusal } = virtualBudget();
    await acquire();
    pass(2_000);
    await refusal();
    pass(1);
    await acquire();
    await refusal();
  });
});
