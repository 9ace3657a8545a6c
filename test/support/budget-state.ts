import type { Redis } from 'ioredis';

/** What tests know of the state that the budget's script keeps of a company; there is more in it. */
interface BudgetScriptState {
  limit?: number;
  /** What is left of it in the window that is known. */
  remaining?: number;
  end?: number;
  blocked?: number;
  /** When it was asked last, by the clock of all these. */
  seen?: number;
  /** Permits in flight, with the ends of their leases. */
  flight: Record<string, number>;
}

export async function readBudgetState(redis: Redis, company: string): Promise<BudgetScriptState> {
  return { flight: {}, ...JSON.parse((await redis.get(keyOf(company))) ?? '{}') };
}

export async function writeBudgetState(
  redis: Redis,
  company: string,
  state: BudgetScriptState & Record<string, unknown>,
): Promise<void> {
  await redis.set(keyOf(company), JSON.stringify(state), 'KEEPTTL');
}

function keyOf(company: string): string {
  return `budget:{${company}}:state`;
}
