import type { RateBudget } from '../client/budget/rate-budget.ts';
import type { InstanceStore } from '../store/instances.ts';

/**
 * @returns a function that gives up what a process that died had of the limit, in the companies whose runs it had: their
 *   other workers need not wait for its leases to end
 */
export function abandonPermits({ instances, budget }: { instances: InstanceStore; budget: RateBudget }) {
  return async (deadId: string, runs: readonly { instanceId: string }[]): Promise<void> => {
    const ids = new Set(runs.map((run) => run.instanceId));
    const known = await Promise.all([...ids].map((id) => instances.find(id)));
    const companies = known.flatMap((found) => (found ? [found.company_id ?? found.id] : []));
    await Promise.all([...new Set(companies)].map((company) => budget.abandon(company, deadId)));
  };
}
