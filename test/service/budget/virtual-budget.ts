import type { Permit, Settlement } from '../../../src/service/budget/rate-budget.ts';
import { modelBudget } from './model/model-budget.ts';
import { RESET, ROUTE, rate } from './rate.ts';

const START_MS = Date.UTC(2031, 0, 1);

/** A budget of one company in a time that passes when the test says so. */
export function virtualBudget() {
  const { redis, budget } = modelBudget(START_MS, 0);
  const company = 'company';

  function pass(ms: number): void {
    redis.nowUs += ms * 1_000;
  }

  async function acquire(route = ROUTE): Promise<Permit> {
    const admission = await budget.acquire(company, route);
    if (admission.permit === undefined)
      throw new Error(`no permit: ${admission.why}, ${admission.waitMs} ms`);
    return admission.permit;
  }

  async function refusal(route = ROUTE) {
    const admission = await budget.acquire(company, route);
    if (admission.permit !== undefined) throw new Error('a permit was granted');
    return admission;
  }

  /** One request from permit to answer. */
  async function request(settlement: Settlement, route = ROUTE, tookMs = 10): Promise<void> {
    const permit = await acquire(route);
    pass(tookMs);
    await budget.settle(permit, settlement);
  }

  /** An answer of a window of 120 that ends so long after it. */
  function answer(remaining: number, endsInMs = 30_000, resetMs = RESET): Settlement {
    return { answer: { rate: rate(remaining, { endsInMs, resetMs }) } };
  }

  /** What routes are blocked until, as the script keeps it. */
  function blocks(): Record<string, number> {
    return JSON.parse(String(redis.call('GET', [`budget:{${company}}:state`]))).blocks;
  }

  return { budget, company, flush: () => redis.flush(), blocks, pass, acquire, refusal, request, answer };
}
