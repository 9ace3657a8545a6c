import type { InstanceStatus } from '../../sync/status-types.ts';
import { formatAhead, formatNumber, instantOf } from './format.ts';
import type { LiveValues } from './live-values.ts';

/** Less than this part of the limit is little. */
export const LOW_SHARE = 0.2;

/** Whether the service has asked for a break that is not over. */
export function isBlocked(budget: InstanceStatus['budget'], now: number): boolean {
  const until = instantOf(budget.blocked_until);
  return until !== undefined && until > now;
}

/**
 * Requests that are left, as the service said them last. After the window's end they are all there again; then
 * the budget knows a limit and nothing else.
 */
export function remainingNow(budget: InstanceStatus['budget'], now: number): number | null {
  const reset = instantOf(budget.reset_at);
  if (reset !== undefined && reset <= now) return budget.limit;
  return budget.remaining ?? (isBlocked(budget, now) ? null : budget.limit);
}

function windowText(budget: InstanceStatus['budget'], now: number): string {
  if (isBlocked(budget, now)) {
    return `The service asked for a break; requests go on ${formatAhead(budget.blocked_until, now)}.`;
  }
  const reset = instantOf(budget.reset_at);
  if (budget.limit === null) return 'The first answer of the service will tell.';
  if (reset === undefined || reset <= now) return 'All requests of the next window are free.';
  return `The window starts anew ${formatAhead(budget.reset_at, now)}.`;
}

/**
 * The changing values of the budget's gauge (Response headers on every API response).
 * The arc is drawn with a path length of 100.
 *
 * @param now milliseconds since 1970, local clock
 */
export function budgetValues(budget: InstanceStatus['budget'], now: number): LiveValues {
  const remaining = remainingNow(budget, now);
  const known = remaining !== null && budget.limit !== null && budget.limit > 0;
  const share = known ? Math.min(1, Math.max(0, remaining / (budget.limit ?? 1))) : 0;
  const spoken = known
    ? `${formatNumber(remaining)} of ${formatNumber(budget.limit ?? 0)} requests left in this window`
    : 'Not known yet';
  const burst = budget.burst_remaining;
  return {
    text: {
      'budget.remaining': known ? formatNumber(remaining) : '–',
      'budget.limit': known ? `of ${formatNumber(budget.limit ?? 0)} left` : 'not known yet',
      'budget.spoken': spoken,
      'budget.window': windowText(budget, now),
      'budget.burst': burst === null ? '' : `${formatNumber(burst)} extra requests in reserve`,
    },
    time: {},
    attributes: {
      'budget.arc': {
        'stroke-dasharray': `${(share * 100).toFixed(1)} 100`,
        'data-tone': share < LOW_SHARE ? 'wait' : 'good',
        // A round line end would show as a dot where there is nothing to show.
        visibility: share > 0 ? null : 'hidden',
      },
    },
    show: { 'budget.burst': burst !== null },
  };
}
