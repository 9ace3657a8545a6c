import { type InstanceOverview, type ListOverview, MOST_PENDING_ON_PAGE } from '../../sync/status-types.ts';
import type { OperationsOverview } from '../web-dependencies.ts';
import { formatAhead, formatDuration, formatInstant, formatNumber, instantOf, sentence } from './format.ts';

const WAITS = {
  limit: 'waits for the limit',
  retry: 'waits for the next try',
  turn: 'waits for a worker',
} as const;

/** Why a list stands still, for an operator, with the error as it came. */
function reasonsOf(
  list: ListOverview,
  { status, budget }: Pick<InstanceOverview, 'status' | 'budget'>,
  now: number,
): string[] {
  const { waiting_for, waiting_until, handler } = list;
  const blocked = (instantOf(budget.blocked_until) ?? 0) > now;
  const until = waiting_until === null ? '' : `, goes on ${formatAhead(waiting_until, now)}`;
  const counts: [string, number][] = [
    ['dead letters', handler?.dead_letters ?? 0],
    ['rejected records', list.problems.rejected],
    ['deletions held', list.held_deletions],
  ];
  return [
    ...(list.paused ? ['paused by itself'] : []),
    ...(waiting_for === null || status !== 'active' || list.paused
      ? []
      : [`${WAITS[waiting_for]}${waiting_for === 'limit' && blocked ? ' (retry-after)' : ''}${until}`]),
    ...(list.failing_since === null ? [] : [`fails since ${formatInstant(list.failing_since)}`]),
    ...(list.error_kind === null ? [] : [`${list.error_kind}: ${list.error ?? ''}`]),
    ...(handler?.pending ? [`changes pending: ${pendingText(handler.pending)}`] : []),
    ...counts.filter(([, count]) => count > 0).map(([label, count]) => `${label}: ${formatNumber(count)}`),
    ...(handler?.last_error && handler.pending > 0
      ? [`handler: ${handler.last_error}; tries again ${formatAhead(handler.next_try_at, now)}`]
      : []),
  ];
}

/** The page of all instances counts no further. */
function pendingText(pending: number): string {
  return `${pending === MOST_PENDING_ON_PAGE ? 'at least ' : ''}${formatNumber(pending)}`;
}

/** What keeps a list from its work, or else the state of its last run. */
function stateText(list: ListOverview, status: InstanceOverview['status']): string {
  if (status === 'disconnected') return 'ended';
  if (status === 'needs_reauthorization') return 'stopped';
  if (status === 'paused' || list.paused) return 'paused';
  if (list.failing_since !== null) return 'failing';
  if (list.held_deletions > 0) return 'deletions held';
  return (list.handler?.dead_letters ?? 0) > 0 ? `${list.state}, with dead letters` : list.state;
}

export function operatorsList(
  list: ListOverview,
  status: Pick<InstanceOverview, 'status' | 'budget'>,
  now: number,
) {
  const [start, end] = [instantOf(list.started_at), instantOf(list.finished_at)];
  const last =
    start === undefined || end === undefined
      ? ''
      : `${list.state === 'failed' ? 'failed' : 'finished'} ${formatInstant(list.finished_at)}, ${formatNumber(list.records)} records in ${formatDuration(end - start)}`;
  return {
    state: stateText(list, status.status),
    stored: formatNumber(list.stored),
    last,
    reasons: reasonsOf(list, status, now),
    isBad:
      list.state === 'failed' ||
      list.failing_since !== null ||
      list.held_deletions > 0 ||
      (list.handler?.dead_letters ?? 0) > 0,
  };
}

/** A worker process without a heartbeat for longer stands still, or is gone, in milliseconds. */
const SILENT_MS = 20_000;

/** A worker process, by its last heartbeat. */
export function workerView(
  { id, version, startedAt, at, delivery }: NonNullable<OperationsOverview['workers']>[number],
  now: number,
) {
  const isSilent = at !== null && now - at > SILENT_MS;
  const last = at === null ? null : new Date(at).toISOString();
  const beat = sentence(
    at === null ? 'without heartbeats: an older version' : 'last heartbeat {ago}',
    last,
    now,
  );
  return { id, version, age: formatDuration(now - startedAt), beat, delivery, isSilent };
}
