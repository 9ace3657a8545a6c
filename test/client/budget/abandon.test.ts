import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { RateBudget } from '../../../src/client/budget/rate-budget.ts';
import { EVERY_REDIS, rate, startTestBudget } from './test-budget.ts';

describe.each(EVERY_REDIS)('permits of a dead process on $what', async ({ searchPath }) => {
  const { frozen, budget, newCompany, acquire, refusal, flightOf } = await startTestBudget(searchPath);

  function ofProcess() {
    const processId = randomUUID();
    return { processId, dead: new RateBudget(frozen, 0, processId) };
  }

  it('counts what a dead process had in flight as sent, once, and leaves the permits of others alone', async () => {
    const company = await newCompany(rate(10));
    const { processId, dead } = ofProcess();
    await acquire(company, undefined, dead);
    await acquire(company, undefined, dead);
    const living = await acquire(company);
    await budget.abandon(company, processId);
    expect(await flightOf(company)).toEqual([living.id]);
    expect((await budget.read(company)).remaining).toBe(8);

    await budget.abandon(company, processId);
    expect((await budget.read(company)).remaining).toBe(8);
  });

  it('lets another request find out about the window when the one that was to do so is lost', async () => {
    const company = await newCompany();
    const { processId, dead } = ofProcess();
    for (let permit = (await dead.acquire(company, '/contacts')).permit; permit; ) {
      permit = (await dead.acquire(company, '/contacts')).permit;
    }
    expect((await refusal(company)).why).toBe('probe');
    await budget.abandon(company, processId);
    await acquire(company);
  });
});
