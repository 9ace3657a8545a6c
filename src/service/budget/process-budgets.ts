import type { Redis } from 'ioredis';
import { CountWatch } from './count-watch.ts';
import { LEFT_TO_SYNC, RateBudget } from './rate-budget.ts';

/**
 * The budgets of one process, which watch their connection together.
 *
 * @param processId unlike that of any other process before or after
 * @returns `budget` for the sync and for people, `callBudget` for calls of the handler
 */
export function openBudgets(redis: Redis, processId: string) {
  const watch = new CountWatch(redis);
  return {
    budget: new RateBudget(redis, undefined, processId, 0, watch),
    callBudget: new RateBudget(redis, undefined, processId, LEFT_TO_SYNC, watch),
  };
}
