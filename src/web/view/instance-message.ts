import type { InstanceStatus, ListStatusJson } from '../../sync/status-types.ts';
import type { Site } from '../web-dependencies.ts';
import { errorMessage, isPassing } from './error-messages.ts';
import { formatCount, formatInstant, instantOf, listOf, type Sentence, sentence } from './format.ts';
import { paceText } from './pace.ts';

/** Colours the state. The words say the same. */
export type Tone = 'good' | 'busy' | 'wait' | 'warn' | 'bad' | 'off';

/** The state of an instance: a label, what happened, and what to do or what happens next. */
interface InstanceMessage {
  tone: Tone;
  label: string;
  headline: Sentence;
  next: Sentence;
  /** The wait for the limit, which is as it should be, in small print. */
  small: Sentence | null;
  /** Where the reasons are: the rest of the address behind the instance's. */
  more: { path: string; text: string } | null;
}

interface NamedList extends ListStatusJson {
  title: string;
}

const SETTINGS = { path: '/settings#developer', text: 'For the developer' };
const PROBLEMS = { path: '#problems-rejected', text: 'See which, and why' };

/** An outage of the service that is younger shows as "Retrying". */
const SHORT_OUTAGE_MS = 2 * 60_000;

/** A list that was checked longer ago needs a worker. */
const LATE_CHECK_MS = 5 * 60_000;

/** Whether the last try failed a short while ago and the app tries again. */
export function isRetried(list: ListStatusJson, now: number): boolean {
  const { state, error_kind } = list;
  if (state === 'failed') return isPassing(error_kind) && isYoung(list, now);
  return isBetweenTries(list) && isYoung(list, now);
}

/** Whether a list has failed for good, or for too long. */
export function hasStopped(list: ListStatusJson, now: number): boolean {
  return (list.state === 'failed' || isBetweenTries(list)) && !isRetried(list, now);
}

function isBetweenTries({ state, waiting_for, error_kind }: ListStatusJson): boolean {
  return (state === 'waiting' && waiting_for === 'retry') || (state === 'running' && error_kind !== null);
}

function isYoung({ failing_since }: ListStatusJson, now: number): boolean {
  return now - (instantOf(failing_since) ?? now) < SHORT_OUTAGE_MS;
}

/** Whether changes are undelivered because the handler failed. */
export function isHandlerFailing({ handler }: ListStatusJson): boolean {
  if (handler === null) return false;
  return handler.dead_letters > 0 || (handler.pending > 0 && handler.last_error !== null);
}

/** Whether a `retry-after` of the service still runs. */
export function isBlocked({ blocked_until }: InstanceStatus['budget'], now: number): boolean {
  return (instantOf(blocked_until) ?? 0) > now;
}

function titlesOf(lists: readonly NamedList[]): string {
  return listOf(lists.map(({ title }) => title));
}

function say(
  tone: Tone,
  label: string,
  headline: string | Sentence,
  next: string | Sentence,
  rest: Partial<Pick<InstanceMessage, 'small' | 'more'>> = {},
): InstanceMessage {
  const toSentence = (text: string | Sentence) => (typeof text === 'string' ? sentence(text) : text);
  const { small = null, more = null } = rest;
  return { tone, label, headline: toSentence(headline), next: toSentence(next), small, more };
}

/** Whether a run goes on as it should: the wait for the limit is a part of that. */
export function isCopying({ state, waiting_for, error_kind }: ListStatusJson): boolean {
  return error_kind === null && (state === 'running' || (state === 'waiting' && waiting_for === 'limit'));
}

/** The lists that are not copied while others are: the best list must not hide them. */
function restText(all: readonly NamedList[], copying: readonly NamedList[], now: number): string {
  const rest = all.filter((list) => !copying.includes(list));
  const stopped = rest.filter((list) => !list.paused && hasStopped(list, now));
  const partial = rest.filter((list) => list.paused && list.full_at === null);
  return [
    ...(stopped.length > 0 ? [` The sync of ${titlesOf(stopped)} has stopped: see the reason below.`] : []),
    ...(partial.length > 0 ? [` The first copy of ${titlesOf(partial)} is paused before its end.`] : []),
  ].join('');
}

function copyingMessage(
  status: InstanceStatus,
  all: readonly NamedList[],
  copying: readonly NamedList[],
  now: number,
): InstanceMessage {
  const [until] = copying.flatMap(({ waiting_until }) => waiting_until ?? []).sort();
  const asked = isBlocked(status.budget, now)
    ? 'The service asked for a break: next requests {in}'
    : 'Next requests {in}';
  const pace = paceText(status.budget, copying, now);
  const rest = restText(all, copying, now);
  const next = `${pace} You can leave this page: the copy goes on without it.${rest}`.trim();
  const tone = rest === '' ? 'busy' : 'warn';
  const small = until === undefined ? null : sentence(asked, until, now);
  return say(tone, 'Syncing', `Copying ${titlesOf(copying)}.`, next, { small });
}

function waitingMessage(waiting: readonly NamedList[], now: number): InstanceMessage {
  const retried = waiting.filter((list) => isRetried(list, now));
  if (retried.length > 0) {
    const headline = `The last request for ${titlesOf(retried)} failed.`;
    return say('wait', 'Retrying', headline, 'The app tries again by itself.');
  }
  return say('wait', 'Waiting', 'The sync waits for its turn.', 'It goes on by itself.');
}

/** Whether a worker would have work now. */
function hasWork(status: InstanceStatus, lists: readonly NamedList[], now: number): boolean {
  const due = instantOf(status.next_sync_at);
  const isUnderWay = ({ state, finished_at }: ListStatusJson) =>
    state === 'waiting' || state === 'running' || finished_at === null;
  // A check is due every few minutes at the latest, where there are checks.
  const isLate = ({ checks, checked_at }: ListStatusJson) =>
    checks === 'often' && now - (instantOf(checked_at) ?? now) > LATE_CHECK_MS;
  return (due !== undefined && due <= now) || lists.some((list) => isUnderWay(list) || isLate(list));
}

/** A copy is as up to date as its oldest list, paused lists included. */
function pausedMessage(paused: readonly NamedList[]): InstanceMessage {
  const next = 'Resume below to go on. The other lists are up to date.';
  const partial = paused.filter(({ full_at }) => full_at === null);
  if (partial.length > 0) {
    const headline = `The first copy of ${titlesOf(partial)} is paused before its end.`;
    return say('warn', 'Incomplete', headline, next);
  }
  const [oldest] = paused.map(({ full_at }) => full_at ?? '').sort();
  const headline = `The copy of ${titlesOf(paused)} is paused. It is complete as of ${formatInstant(oldest)}.`;
  return say('off', 'Partly paused', headline, next);
}

/** Changes of a list that its handler could not take, or cannot take at the moment. */
export function undelivered(list: ListStatusJson): number {
  if (list.handler === null || !isHandlerFailing(list)) return 0;
  const { dead_letters, pending, last_error } = list.handler;
  return dead_letters + (last_error === null ? 0 : pending);
}

/** In words of an administrator, who does not know of handlers. */
export function undeliveredText(count: number, app: string): string {
  return count === 0 ? '' : `${formatCount(count, 'change')} could not be handed to ${app}.`;
}

function finishedMessage(
  { next_sync_at: next, outbox, token }: InstanceStatus,
  lists: readonly NamedList[],
  paused: readonly NamedList[],
  { name, support }: Site,
  now: number,
): InstanceMessage {
  const held = lists.filter((list) => list.held_deletions > 0);
  if (held.length > 0) {
    const headline = `The last sync did not find many of the ${titlesOf(held)}. Nothing was deleted.`;
    const advice = 'Confirm the deletions below if they are right. The next sync starts {in}.';
    return say('warn', 'Deletions held', headline, sentence(advice, next, now));
  }
  const isWhole = paused.length === 0;
  const undecided = outbox.refused + outbox.unknown;
  if (undecided > 0) {
    const what = `${formatCount(undecided, 'change')} for the service ${undecided === 1 ? 'waits' : 'wait'}`;
    const headline = `${isWhole ? 'The copy is up to date, but ' : ''}${what} for a decision.`;
    return say('warn', 'Needs attention', headline, `${name} wants to write to the service.`, {
      more: SETTINGS,
    });
  }
  const failing = lists.filter(isHandlerFailing);
  if (failing.length > 0) {
    const count = failing.reduce((sum, list) => sum + undelivered(list), 0);
    const headline = `${isWhole ? 'The copy is up to date, but ' : ''}${undeliveredText(count, name)}`;
    const again = count === 1 ? 'It is tried again by itself.' : 'They are tried again by themselves.';
    const advice = `${again} If this continues, write to ${support}.`;
    return say('warn', 'Needs attention', headline, advice, { more: SETTINGS });
  }
  if (!isWhole) return pausedMessage(paused);
  if (token.failures > 0) {
    const headline = 'The copy is up to date, but the authorization could not be renewed.';
    return say('warn', 'Needs attention', headline, 'The app tries again by itself.');
  }
  const rejected = lists.reduce((sum, list) => sum + list.problems.rejected, 0);
  const headline = 'Everything is copied, and kept up to date.';
  if (rejected === 0) return say('good', 'Up to date', headline, 'There is nothing to do.');
  const correct = `${formatCount(rejected, 'record')} cannot be copied: correct ${rejected === 1 ? 'it' : 'them'} at the service.`;
  return say('good', 'Up to date', 'All other records are copied, and kept up to date.', correct, {
    more: PROBLEMS,
  });
}

function activeMessage(
  status: InstanceStatus,
  all: readonly NamedList[],
  site: Site,
  now: number,
): InstanceMessage {
  const { support } = site;
  const { error_kind } = status;
  if (error_kind !== null) {
    return say('bad', 'Out of order', 'The sync has stopped.', errorMessage(error_kind, support));
  }
  const lists = all.filter(({ paused }) => !paused);
  if (status.workers_missing && hasWork(status, lists, now)) {
    const next = `Nothing is lost, and the sync goes on where it stopped. If this continues, write to ${support}.`;
    return say('bad', 'Out of order', 'The app’s worker is not running, so nothing is copied.', next);
  }
  if (lists.length === 0 && all.length > 0) {
    const next = 'The copy stays as it is. Resume a list below to go on.';
    return say('off', 'Paused', 'Every list is paused.', next);
  }
  const copying = lists.filter(isCopying);
  if (copying.length > 0) return copyingMessage(status, all, copying, now);
  const isWaiting = (list: NamedList) =>
    isRetried(list, now) || (['running', 'waiting'].includes(list.state) && !hasStopped(list, now));
  const waiting = lists.filter(isWaiting);
  if (waiting.length > 0) return waitingMessage(waiting, now);
  const failed = lists.filter((list) => hasStopped(list, now));
  if (failed.length > 0) {
    const headline = `The sync of ${titlesOf(failed)} has stopped.`;
    return say('bad', 'Needs attention', headline, 'See the reason below. The app tries again by itself.');
  }
  if (lists.some((list) => list.finished_at === null) || lists.length === 0) {
    return say('wait', 'Starting', 'The first sync starts in a moment.', 'There is nothing to do.');
  }
  const paused = all.filter((list) => list.paused);
  return finishedMessage(status, lists, paused, site, now);
}

/** Without a company id, every install is an instance of its own. */
const BEGINS_ANEW = 'A new authorization begins a copy of its own.';

function disconnectedMessage({ company_id, has_copy, deleting_copy }: InstanceStatus): InstanceMessage {
  const isKept = has_copy && !deleting_copy;
  const gone = deleting_copy ? 'Its copied records are being deleted.' : 'Its records are deleted.';
  const again = isKept ? 'Install again to bring the copy up to date.' : 'Install again to copy them anew.';
  const copy = isKept ? 'The copy is kept.' : gone;
  if (company_id === null) {
    return say('off', 'Disconnected', 'This installation has ended.', `${copy} ${BEGINS_ANEW}`);
  }
  return say('off', 'Disconnected', 'The app has no access to this company any more.', `${copy} ${again}`);
}

/**
 * The state of an instance, for its administrator.
 *
 * @param now milliseconds since 1970, local clock
 */
export function instanceMessage(status: InstanceStatus, site: Site, now: number): InstanceMessage {
  if (status.status === 'disconnected') return disconnectedMessage(status);
  if (status.status === 'paused') {
    const next = 'The copy stays as it is. Press “Resume” to go on where it stopped.';
    return say('off', 'Paused', 'Nothing is copied at the moment.', next);
  }
  if (status.status === 'needs_reauthorization') {
    const why = errorMessage(status.error_kind ?? 'reauthorize', site.support);
    const again = 'Authorize it again, and the sync goes on where it stopped.';
    const next = `${why} ${status.company_id === null ? BEGINS_ANEW : again}`;
    const headline = 'The sync has stopped: the app needs a new authorization.';
    return say('warn', 'Needs authorization', headline, next);
  }
  const named = site.resources.flatMap(({ name, title }) => {
    const list = status.resources[name];
    return list ? [{ ...list, title }] : [];
  });
  return activeMessage(status, named, site, now);
}
