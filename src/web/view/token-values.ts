import type { InstanceStatus } from '../../sync/status-types.ts';
import { formatAhead, formatCount, instantOf } from './format.ts';
import type { LiveValues } from './live-values.ts';

/** Position on the line from issue to end, in percent. */
function percentOf(moment: number, start: number, end: number): string {
  const share = Math.min(1, Math.max(0, (moment - start) / (end - start)));
  return `${(share * 100).toFixed(1)}%`;
}

/** The page shows minutes; a value that changes more often would be sent for nothing. */
function wholeMinute(moment: number): string {
  return new Date(Math.floor(moment / 60_000) * 60_000).toISOString();
}

function refreshText(token: InstanceStatus['token'], now: number): string {
  const due = instantOf(token.refresh_due_at);
  if (due === undefined) return '';
  return due <= now
    ? 'It is being renewed now.'
    : `It will be renewed ${formatAhead(token.refresh_due_at, now)}, by itself.`;
}

/**
 * The changing values of the tokens' timeline (Token lifecycle). Its clock is the service's: that is the one
 * that tokens end by.
 */
export function tokenValues(status: InstanceStatus): LiveValues {
  const { token } = status;
  const now = instantOf(status.now) ?? 0;
  const [start, end] = [instantOf(token.refresh_issued_at), instantOf(token.refresh_expires_at)];
  const due = instantOf(token.refresh_due_at);
  const drawable = start !== undefined && end !== undefined && end > start;
  const nowAt = drawable ? percentOf(now, start, end) : '0%';
  const dueAt = drawable && due !== undefined ? percentOf(due, start, end) : '100%';
  const access = instantOf(token.access_expires_at);
  return {
    text: {
      'token.refresh': refreshText(token, now),
      'token.access':
        access !== undefined && access > now
          ? `ends ${formatAhead(token.access_expires_at, now)}`
          : 'renewed with the next request',
      'token.refreshes': formatCount(token.refreshes, 'time'),
      'token.rotations': formatCount(token.rotations, 'time'),
    },
    time: {
      'token.issued': token.refresh_issued_at,
      'token.now': wholeMinute(now),
      'token.due': token.refresh_due_at,
      'token.expires': token.refresh_expires_at,
    },
    attributes: {
      'token.spent': { width: nowAt },
      'token.now-mark': { cx: nowAt },
      'token.due-mark': { x1: dueAt, x2: dueAt },
    },
    show: {
      'token.line': drawable,
      'token.refresh': due !== undefined,
      'token.access': access !== undefined,
    },
  };
}
