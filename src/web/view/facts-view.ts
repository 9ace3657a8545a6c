import type { InstanceStatus } from '../../sync/status-types.ts';
import { formatCount, formatNumber, instantOf, sentence } from './format.ts';
import { isBlocked } from './instance-message.ts';

/** Below this share of the limit the gauge warns. */
const LOW_SHARE = 0.2;

/**
 * The gauge of the request budget (Response headers on every API response). The arc's path length is 100.
 *
 * @param now milliseconds since 1970, local clock
 */
export function budgetView(budget: InstanceStatus['budget'], now: number) {
  const { limit, burst_remaining: burst } = budget;
  const blocked = isBlocked(budget, now);
  // After the window's end all requests are there again.
  const isOver = (instantOf(budget.reset_at) ?? now + 1) <= now;
  const remaining = isOver ? limit : (budget.remaining ?? (blocked ? null : limit));
  const share = remaining === null || !limit ? 0 : Math.min(1, Math.max(0, remaining / limit));
  const isKnown = remaining !== null && limit !== null;
  return {
    remaining: isKnown ? formatNumber(remaining) : '–',
    limit: isKnown ? `of ${formatNumber(limit)} left` : 'not known yet',
    spoken: isKnown
      ? `${formatNumber(remaining)} of ${formatNumber(limit)} requests left in this window`
      : 'Not known yet',
    arc: { length: (share * 100).toFixed(1), tone: share < LOW_SHARE ? 'wait' : 'good', isShown: share > 0 },
    window: blocked
      ? 'The service asked for a break.'
      : limit === null
        ? 'Known after the first answer of the service.'
        : '',
    burst: burst === null ? '' : `${formatNumber(burst)} extra requests in reserve`,
  };
}

/** The timeline of the authorization (Token lifecycle), on the service's clock. */
export function tokenView({ token, now: serviceNow }: InstanceStatus) {
  const now = instantOf(serviceNow) ?? 0;
  const [start, end] = [instantOf(token.refresh_issued_at), instantOf(token.refresh_expires_at)];
  const due = instantOf(token.refresh_due_at);
  const percent = (moment: number) => {
    if (start === undefined || end === undefined || end <= start) return '0%';
    return `${(Math.min(1, Math.max(0, (moment - start) / (end - start))) * 100).toFixed(1)}%`;
  };
  const access = instantOf(token.access_expires_at);
  return {
    isDrawable: start !== undefined && end !== undefined && end > start,
    now: percent(now),
    due: percent(due ?? end ?? 0),
    moments: [
      { label: 'Issued', at: token.refresh_issued_at },
      { label: 'Now', at: new Date(Math.floor(now / 60_000) * 60_000).toISOString() },
      { label: 'Renewal due', at: token.refresh_due_at },
      { label: 'Expires', at: token.refresh_expires_at },
    ],
    access:
      access !== undefined && access > now
        ? sentence('ends {in}', token.access_expires_at, now)
        : sentence('renewed with the next request'),
    refreshes: formatCount(token.refreshes, 'time'),
    rotations: formatCount(token.rotations, 'time'),
    failure:
      token.failures === 0
        ? ''
        : `The last ${formatCount(token.failures, 'try', 'tries')} to renew it failed. The app keeps trying; until it succeeds, the copy may stand still.`,
  };
}
