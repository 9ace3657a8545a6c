import type { InstanceStatus, ListStatusJson } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { isBlocked } from './budget-values.ts';
import { ERROR_MESSAGES } from './error-messages.ts';
import { formatAhead, formatCount, formatDuration, formatNumber, instantOf } from './format.ts';
import { isRetried, type Tone } from './instance-message.ts';
import type { LiveValues } from './live-values.ts';

/** How fast a run goes, seen from outside: undefined while nobody has watched it long enough. */
export type RecordsPerSecond = number | undefined;

/** What counts of a list's instance. */
type InstanceOfList = Pick<InstanceStatus, 'status' | 'budget' | 'deleting_copy'>;

/** The state of a list in a word or two, and what it waits for (empty when for nothing). */
interface ListMessage {
  label: string;
  tone: Tone;
  wait: string;
}

const WAITS_FOR = {
  limit: 'Waiting for the service’s limit',
  retry: 'Waiting before the next try',
  turn: 'Waiting for its turn',
} as const;

function waitText(list: ListStatusJson, budget: InstanceStatus['budget'], now: number): string {
  const isAsked = list.waiting_for === 'limit' && isBlocked(budget, now);
  const known = list.waiting_for ? WAITS_FOR[list.waiting_for] : 'Waiting';
  const reason = isAsked ? 'Waiting, as the service asked for a break' : known;
  const ahead = formatAhead(list.waiting_until, now);
  return ahead ? `${reason}; goes on ${ahead}.` : `${reason}.`;
}

function runMessage(list: ListStatusJson, budget: InstanceStatus['budget'], now: number): ListMessage {
  switch (list.state) {
    case 'running':
      if (isRetried(list)) return { label: 'Trying again', tone: 'wait', wait: '' };
      return { label: 'Copying', tone: 'busy', wait: '' };
    case 'waiting':
      return { label: 'Waiting', tone: 'wait', wait: waitText(list, budget, now) };
    case 'failed':
      return { label: 'Stopped', tone: 'bad', wait: '' };
    case 'idle':
      if (list.finished_at === null) return { label: 'Not started', tone: 'off', wait: '' };
      if (list.held_deletions > 0) return { label: 'Deletions held', tone: 'warn', wait: '' };
      return { label: 'Complete', tone: 'good', wait: '' };
  }
}

/** How a list is. What the instance's state has stopped neither waits nor runs, whatever its run says. */
function listMessage(
  list: ListStatusJson,
  { status, budget, deleting_copy }: InstanceOfList,
  now: number,
): ListMessage {
  if (status === 'disconnected') {
    const kept = deleting_copy ? 'Being deleted' : 'Kept';
    return { label: list.stored > 0 ? kept : 'Empty', tone: 'off', wait: '' };
  }
  const complete = list.state === 'idle' && list.finished_at !== null;
  if (status === 'active' || complete) return runMessage(list, budget, now);
  return status === 'paused'
    ? { label: 'Paused', tone: 'off', wait: '' }
    : { label: 'Stopped', tone: 'warn', wait: 'Goes on once the app is authorized again.' };
}

/** How long the last run took, or how fast the current one is; a run that stands still just now has no pace. */
function paceText(list: ListStatusJson, pace: RecordsPerSecond): string {
  if (list.state === 'running') {
    const rounded = Math.round(pace ?? 0);
    return rounded > 0 ? `${formatNumber(rounded)} records/s` : '';
  }
  const [start, end] = [instantOf(list.started_at), instantOf(list.finished_at)];
  if (list.state !== 'idle' || start === undefined || end === undefined || end < start) return '';
  return `took ${formatDuration(end - start)}`;
}

/**
 * The bar's value of its maximum. How many records a company has is known only from an earlier run: the copy
 * then holds more than the current run has brought. Without that the bar shows movement instead of a share, and
 * hides while nothing moves: an empty bar would say that nothing is there.
 */
function bar(list: ListStatusJson): { value: string | null; max: string } {
  if (list.state === 'idle') return { value: list.finished_at ? '1' : '0', max: '1' };
  if (list.stored > list.records) return { value: String(list.records), max: String(list.stored) };
  return { value: null, max: '1' };
}

function progressText(list: ListStatusJson): string {
  if (list.state === 'idle' || list.stored <= list.records) {
    return `${formatCount(list.records, 'record')} on ${formatCount(list.pages, 'page')}`;
  }
  const records = `${formatNumber(list.records)} of about ${formatCount(list.stored, 'record')}`;
  return `${records} on ${formatCount(list.pages, 'page')}`;
}

/** Everything about a list's run that is worth a word only when it is not zero. */
function remarks(list: ListStatusJson): string {
  const parts = [];
  if (list.deleted > 0) parts.push(`${formatCount(list.deleted, 'record')} deleted at the service`);
  if (list.rejected > 0) parts.push(`${formatCount(list.rejected, 'record')} cannot be kept`);
  return parts.join(' · ');
}

function heldText(list: ListStatusJson, title: string): string {
  const share = `${formatNumber(list.held_deletions)} of ${formatNumber(list.stored)} ${title.toLowerCase()}`;
  return `This sync would delete ${share}. Nothing was deleted. If they are gone at the service, confirm the deletions. The next sync deletes them, too, if it does not find them.`;
}

function handlerText({ handler }: ListStatusJson): string {
  if (handler === null) return '';
  if (handler.pending > 0) return `${formatCount(handler.pending, 'change')} pending for the handler.`;
  return handler.dead_letters > 0
    ? `${formatCount(handler.dead_letters, 'dead letter')}; the handler has taken everything else.`
    : 'The handler has taken every change.';
}

function handlerErrorText({ handler }: ListStatusJson, now: number): string {
  if (handler === null || handler.last_error === null || handler.pending === 0) return '';
  const ahead = formatAhead(handler.next_try_at, now);
  return `The handler failed: ${handler.last_error}${ahead && ` (next try ${ahead})`}`;
}

/**
 * The changing values of one list, under its name.
 *
 * @param instance whose state may have stopped what the run was about to do
 * @param now milliseconds since 1970, local clock, which runs go by
 */
export function listValues(
  { name, title }: WebResource,
  list: ListStatusJson,
  instance: InstanceOfList,
  pace: RecordsPerSecond,
  now: number,
): LiveValues {
  const { label, tone, wait } = listMessage(list, instance, now);
  const share = bar(list);
  // A company that is disconnected has a copy, but no run that could be anywhere.
  const hasRun = instance.status !== 'disconnected';
  const moves = instance.status === 'active' && list.state === 'running';
  const isHeld = hasRun && list.held_deletions > 0;
  const { handler } = list;
  /** Texts that are shown unless they are empty. */
  const texts = {
    pace: paceText(list, pace),
    wait,
    remarks: remarks(list),
    error: list.error_kind === null ? '' : ERROR_MESSAGES[list.error_kind],
    detail: list.error ?? '',
    held: isHeld ? heldText(list, title) : '',
    handler: hasRun ? handlerText(list) : '',
    'handler-error': hasRun ? handlerErrorText(list, now) : '',
  };
  const ofName = <T>(values: Record<string, T>) =>
    Object.fromEntries(Object.entries(values).map(([key, value]) => [`${name}.${key}`, value]));
  return {
    text: ofName({
      stored: formatNumber(list.stored),
      state: label,
      progress: progressText(list),
      ended: list.state === 'failed' ? 'Stopped' : 'Last finished',
      ...texts,
    }),
    time: ofName({ finished: list.finished_at }),
    attributes: ofName<Record<string, string | null>>({ bar: share, tone: { 'data-tone': tone } }),
    show: ofName({
      ...Object.fromEntries(Object.entries(texts).map(([key, text]) => [key, text !== ''])),
      bar: hasRun && (share.value !== null || moves),
      progress: hasRun,
      finished: list.finished_at !== null,
      retry: handler !== null && (handler.dead_letters > 0 || handler.next_try_at !== null),
    }),
  };
}
