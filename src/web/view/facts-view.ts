import type { InstanceStatus, RunJson } from '../../sync/status-types.ts';
import { formatCount, formatNumber, instantOf, type Sentence, sentence } from './format.ts';
import { isBlocked } from './instance-message.ts';

/** A fact with its name: words, or a moment (ISO 8601). */
export interface Fact {
  label: string;
  text?: Sentence;
  at?: string | null;
}

/**
 * The request budget (Response headers on every API response).
 *
 * @param runs the last ones of all lists
 * @param now milliseconds since 1970, local clock
 */
export function budgetFacts(budget: InstanceStatus['budget'], runs: readonly RunJson[], now: number): Fact[] {
  const { limit, burst_remaining: burst } = budget;
  const blocked = isBlocked(budget, now);
  // After the window's end all requests are there again.
  const isOver = (instantOf(budget.reset_at) ?? now + 1) <= now;
  const remaining = isOver ? limit : (budget.remaining ?? (blocked ? null : limit));
  const left =
    limit === null || remaining === null
      ? blocked
        ? 'The service asked for a break.'
        : 'Known after the first answer of the service.'
      : `${formatNumber(remaining)} of ${formatNumber(limit)} left in this window`;
  const refused = runs.reduce((sum, run) => sum + run.refused, 0);
  return [
    { label: 'Requests', text: sentence(left) },
    ...(burst === null
      ? []
      : [{ label: 'Burst', text: sentence(`${formatNumber(burst)} extra requests in reserve`) }]),
    {
      label: 'Refused with 429',
      text: sentence(`${formatCount(refused, 'request')} of the syncs in the history`),
    },
  ];
}

/** The authorization (Token lifecycle), on the service's clock. */
export function tokenFacts({ token, now: serviceNow }: InstanceStatus): Fact[] {
  const now = instantOf(serviceNow) ?? 0;
  const access = instantOf(token.access_expires_at);
  const isValid = access !== undefined && access > now;
  return [
    {
      label: 'Access token',
      text: isValid
        ? sentence('ends {in}', token.access_expires_at, now)
        : sentence('renewed with the next request'),
    },
    { label: 'Access token renewed', text: sentence(formatCount(token.refreshes, 'time')) },
    { label: 'Refresh token issued', at: token.refresh_issued_at },
    { label: 'Refresh token replaced', text: sentence(formatCount(token.rotations, 'time')) },
    { label: 'Replaced next', at: token.refresh_due_at },
    { label: 'Refresh token ends', at: token.refresh_expires_at },
  ];
}

/** That the authorization cannot be renewed at the moment; empty if it can. */
export function tokenFailure({ token, status }: InstanceStatus): string {
  if (token.failures === 0 || (status !== 'active' && status !== 'paused')) return '';
  const tries = token.failures === 1 ? 'last try' : `last ${formatNumber(token.failures)} tries`;
  return `The ${tries} to renew the authorization failed. The app keeps trying; until it succeeds, the copy may stand still.`;
}
