import { describe, expect, it } from 'vitest';
import { simulate } from './model/simulation.ts';
import { USUAL_SCENARIO } from './model/usual-scenario.ts';
import { virtualBudget } from './virtual-budget.ts';

describe('when somebody else uses the limit', () => {
  it('leaves a permit, and asks again soon while an answer is under way', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    await request(answer(20));
    pass(1_000);
    // One of ours, one of another's.
    await request(answer(18));
    await request(answer(2));
    await acquire();
    const { why, waitMs } = await refusal();
    expect(why).toBe('shared');
    expect(waitMs).toBeLessThanOrEqual(50);
  });

  it('does not leave any to ourselves: what was lost, what is on its way, what was asked without a permit', async () => {
    const { budget, company, acquire, refusal, request, answer } = virtualBudget();
    await request(answer(10));
    await request({});
    const late = await acquire();
    await request(answer(7));
    await budget.settle(late, answer(7));
    const heard = answer(6).answer?.rate;
    if (heard !== undefined) await budget.observe(company, heard);
    // Less the one that may have been counted after the last answer.
    for (let left = 5; left > 0; left--) await acquire();
    expect((await refusal()).why).toBe('limit');
  });

  it('takes what was used before the window came into sight for nobody’s', async () => {
    const { acquire, refusal, request, answer } = virtualBudget();
    await request(answer(3));
    for (let left = 3; left > 0; left--) await acquire();
    expect((await refusal()).why).toBe('limit');
  });

  it('meets at most a refusal in ten windows when that is a sixth, and the limit is used by both', async () => {
    const { sent, others } = await simulate({ ...USUAL_SCENARIO, runMs: 60_000, othersEveryMs: 300 });
    expect(sent.filter(({ outcome }) => outcome === 'limit').length).toBeLessThanOrEqual(1);
    const counted = sent.filter(({ outcome }) => outcome === 'counted').length;
    expect(counted + others).toBeGreaterThanOrEqual(0.99 * 10 * 120);
    expect(others).toBeGreaterThan(50);
  });
});
