import type { RateHeaders } from '../../../src/service/headers.ts';

export const ROUTE = '/contacts';
export const OTHER_ROUTE = '/conversations';
/** The service's name of a window; its clock need not be ours. */
export const RESET = Date.UTC(2031, 0, 1);

/** What an answer says of a window of 120 that ends in half a minute. */
export function rate(remaining: number, facts: Partial<RateHeaders> = {}): RateHeaders {
  return { limit: 120, remaining, resetMs: RESET, endsInMs: 30_000, burstRemaining: undefined, ...facts };
}
