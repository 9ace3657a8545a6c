import type { Freshness } from '../../store/records.ts';
import type { InstanceStatus, ListStatusJson } from '../../sync/status-types.ts';
import type { Site, WebResource } from '../web-dependencies.ts';
import { errorMessage } from './error-messages.ts';
import { formatCount, formatDuration, formatNumber, instantOf, type Sentence, sentence } from './format.ts';
import {
  hasStopped,
  isCopying,
  isHandlerFailing,
  isRetried,
  type Tone,
  undelivered,
  undeliveredText,
} from './instance-message.ts';

interface ListMessage {
  label: string;
  tone: Tone;
}

/** The instance's message has the countdown for the limit. */
const WAITS_FOR = {
  limit: '',
  retry: 'The app tries again {in}.',
  turn: 'The list waits for its turn.',
} as const;

function runMessage(list: ListStatusJson, now: number): ListMessage {
  if (isRetried(list, now)) return { label: 'Retrying', tone: 'wait' };
  if (hasStopped(list, now)) return { label: 'Stopped', tone: 'bad' };
  if (isCopying(list)) return { label: 'Copying', tone: 'busy' };
  switch (list.state) {
    case 'running':
      return { label: 'Copying', tone: 'busy' };
    case 'waiting':
      return { label: 'Waiting', tone: 'wait' };
    case 'failed':
    case 'idle':
      if (list.finished_at === null) return { label: 'Not started', tone: 'off' };
      return list.held_deletions > 0
        ? { label: 'Deletions held', tone: 'warn' }
        : { label: 'Complete', tone: 'good' };
  }
}

function listMessage(
  list: ListStatusJson,
  { status, deleting_copy }: InstanceStatus,
  now: number,
): ListMessage {
  if (status === 'disconnected') {
    const kept = deleting_copy ? 'Being deleted' : 'Kept';
    return { label: list.stored > 0 ? kept : 'Empty', tone: 'off' };
  }
  if (status === 'paused' || list.paused) return { label: 'Paused', tone: 'off' };
  const isComplete = list.state === 'idle' && list.finished_at !== null;
  return status === 'active' || isComplete ? runMessage(list, now) : { label: 'Stopped', tone: 'warn' };
}

function waitSentence(list: ListStatusJson, { status }: InstanceStatus, now: number): Sentence | null {
  const { state, waiting_for, waiting_until, next_sync_at } = list;
  if (status !== 'active' || list.paused) return null;
  if (state === 'failed') return sentence(WAITS_FOR.retry, waiting_until ?? next_sync_at, now);
  const text = state === 'waiting' ? WAITS_FOR[waiting_for ?? 'turn'] : '';
  return text === '' ? null : sentence(text, waiting_until, now);
}

/** Whether the last full run tells how many records the open one will read: in a first copy nobody knows. */
function isSizeKnown({ full_at, stored, records }: ListStatusJson): boolean {
  return full_at !== null && stored > records;
}

/**
 * The progress bar: value and maximum. The value is null on a first run, as nobody knows how many records will come.
 */
function bar(list: ListStatusJson): { value: number | null; max: number } | null {
  if (list.state === 'idle') return null;
  if (isSizeKnown(list)) return { value: list.records, max: list.stored };
  return isCopying(list) ? { value: null, max: 1 } : null;
}

/** What the open run has read, waits included; of one that has ended, how long it took. */
function progressSentence(list: ListStatusJson, now: number): Sentence | null {
  const [start, end] = [instantOf(list.started_at), instantOf(list.finished_at)];
  if (start === undefined) return null;
  if (list.state === 'idle') {
    if (end === undefined) return null;
    return sentence(
      `The last sync read ${formatCount(list.records, 'record')} in ${formatDuration(end - start)}.`,
    );
  }
  const read = isSizeKnown(list)
    ? `${formatNumber(list.records)} of about ${formatCount(list.stored, 'record')} read`
    : `${formatCount(list.records, 'record')} so far`;
  return sentence(`${read}, begun {ago}`, list.started_at, now);
}

function heldText(list: ListStatusJson, title: string): string {
  if (list.held_deletions === 0) return '';
  const share = `${formatNumber(list.held_deletions)} of ${formatNumber(list.stored)} ${title.toLowerCase()}`;
  return `The last sync did not find ${share}. Nothing was deleted. If they are gone at the service, confirm the deletions. Otherwise the app waits for 24 hours of syncs that all miss them.`;
}

function missingText({ missing, held_deletions }: ListStatusJson): string[] {
  const count = missing - held_deletions;
  return count > 0
    ? [`${formatCount(count, 'record')} missing: deleted if the next sync misses them, too`]
    : [];
}

const SPANS = [
  [24 * 60, 'day'],
  [60, 'hour'],
  [1, 'minute'],
] as const;

/** How current a list's copy is, for pages of its records. @param hasRecords whether it holds any */
export function freshnessView({ fullAt, checkedAt }: Freshness, hasRecords: boolean, now: number) {
  const iso = (ms: number | null) => (ms === null ? null : new Date(ms).toISOString());
  return {
    fullAt: iso(fullAt),
    checked: checkedAt === null ? null : sentence('checked {ago}', iso(checkedAt), now),
    compared: checkedAt === null ? null : sentence('{ago}', iso(checkedAt), now),
    isPartial: fullAt === null && hasRecords,
  };
}

/** How current the copy of a company is: as current as its oldest list. */
export function companyFreshness({ resources, has_copy, next_sync_at }: InstanceStatus, now: number) {
  const lists = Object.values(resources);
  const oldest = (of: (list: ListStatusJson) => string | null) => {
    const moments = lists.map((list) => instantOf(of(list)) ?? null);
    return moments.includes(null) || moments.length === 0 ? null : Math.min(...moments.map(Number));
  };
  const of = { fullAt: oldest(({ full_at }) => full_at), checkedAt: oldest(({ checked_at }) => checked_at) };
  return {
    ...freshnessView(of, has_copy, now),
    next: next_sync_at === null ? null : sentence('{in}', next_sync_at, now),
  };
}

/** How changes arrive where checks do not bring them. */
function rhythmText({ checks, interval_minutes: minutes }: ListStatusJson): string {
  if (checks !== 'rare' && checks !== 'off') return '';
  const [span, unit] = SPANS.find(([length]) => minutes >= length && minutes % length === 0) ?? [1, 'minute'];
  const every = minutes === span ? unit : formatCount(minutes / span, unit);
  return `Changes arrive with the whole list, every ${every}.`;
}

/**
 * One list on the dashboard.
 *
 * @param now milliseconds since 1970, local clock
 */
export function listView(
  { name, title }: WebResource,
  list: ListStatusJson,
  status: InstanceStatus,
  site: Site,
  now: number,
) {
  const isStopped = status.status !== 'active' && status.status !== 'paused';
  const canStart = ['idle', 'failed'].includes(list.state) || list.waiting_for === 'retry';
  return {
    name,
    title,
    ...listMessage(list, status, now),
    stored: formatNumber(list.stored),
    bar: isStopped ? null : bar(list),
    progress: isStopped ? null : progressSentence(list, now),
    wait: waitSentence(list, status, now),
    error: list.error_kind === null || isStopped ? '' : errorMessage(list.error_kind, site.support),
    held: heldText(list, title),
    remarks: [
      ...(list.deleted > 0 ? [`${formatCount(list.deleted, 'record')} deleted at the service`] : []),
      ...missingText(list),
      ...(list.rejected > 0 ? [`${formatCount(list.rejected, 'record')} cannot be copied`] : []),
    ].join(' · '),
    checked: list.checked_at === null ? null : sentence('checked {ago}', list.checked_at, now),
    fullAt: list.full_at,
    isPartial: list.full_at === null && list.stored > 0,
    rhythm: isStopped || list.paused ? '' : rhythmText(list),
    stoppedAt: status.status !== 'disconnected' && list.state === 'failed' ? list.finished_at : null,
    undelivered: undeliveredText(undelivered(list), site.name),
    paused: list.paused,
    canSync: canStart && !list.paused,
    interval: list.interval_minutes,
    mayNeedAuthorization: list.error_kind === 'refused' && (hasStopped(list, now) || isRetried(list, now)),
  };
}

function deliveredText({ pending, dead_letters }: NonNullable<ListStatusJson['handler']>): string {
  if (pending > 0) return `${formatCount(pending, 'change')} pending.`;
  if (dead_letters === 0) return 'Every change is delivered.';
  return `${formatCount(dead_letters, 'dead letter')}; every other change is delivered.`;
}

/**
 * How far the handler is with a list, for a developer; undefined without a handler.
 *
 * @param now milliseconds since 1970, local clock
 */
export function handlerView(list: ListStatusJson, now: number) {
  const { handler } = list;
  if (handler === null) return undefined;
  const reason = handler.pending > 0 ? handler.last_error : null;
  return {
    progress: deliveredText(handler),
    error:
      reason === null
        ? null
        : sentence('The handler failed. The app tries again {in}.', handler.next_try_at, now),
    reason,
    isFailing: isHandlerFailing(list),
  };
}
