import type { InstanceStatus, ListStatusJson } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { isBlocked, LOW_SHARE, remainingNow } from './budget-values.ts';
import { formatAgo, formatAhead, instantOf, listOf } from './format.ts';

/** Colours the state; the message always says the same. */
export type Tone = 'good' | 'busy' | 'wait' | 'warn' | 'bad' | 'off';

/** The state of an instance: two words, a sentence, and what to do or what happens next. */
export interface InstanceMessage {
  tone: Tone;
  label: string;
  headline: string;
  next: string;
}

/** A list with the title that it has on the page. */
interface NamedList {
  title: string;
  status: ListStatusJson;
}

/** Whether the last try failed: the list waits for another, or is at it, and has brought nothing since. */
export function isRetried({ state, waiting_for, error_kind }: ListStatusJson): boolean {
  return (state === 'waiting' && waiting_for === 'retry') || (state === 'running' && error_kind !== null);
}

/** Whether the handler has not taken everything, because it failed. */
export function isHandlerFailing({ handler }: ListStatusJson): boolean {
  if (handler === null) return false;
  return handler.dead_letters > 0 || (handler.pending > 0 && handler.last_error !== null);
}

function titlesOf(lists: readonly NamedList[]): string {
  return listOf(lists.map(({ title }) => title));
}

/** The sync leaves the last few requests of a window to what a person waits for. */
function limitHeadline(budget: InstanceStatus['budget'], now: number): string {
  const left = remainingNow(budget, now);
  if (left === 0) return 'This minute’s requests are used up.';
  if (left !== null && left < (budget.limit ?? 0) * LOW_SHARE) {
    return 'This minute’s requests are all but used up.';
  }
  return 'The sync waits until the service allows more requests.';
}

/** What a sync waits for, of which no part gets on just now. */
function waitingMessage(
  budget: InstanceStatus['budget'],
  waiting: readonly NamedList[],
  now: number,
): InstanceMessage {
  const until = waiting.map(({ status }) => status.waiting_until).filter((date) => date !== null);
  const ahead = formatAhead(until.sort()[0], now) || 'any moment';
  const retried = waiting.filter(({ status }) => isRetried(status));
  if (retried.length > 0) {
    return {
      tone: 'wait',
      label: 'Trying again',
      headline: `The last request for ${titlesOf(retried)} failed.`,
      next: `The app tries again by itself, ${ahead}. What went wrong stands below.`,
    };
  }
  if (waiting.some(({ status }) => status.waiting_for === 'limit')) {
    const isAsked = isBlocked(budget, now);
    return {
      tone: 'wait',
      label: isAsked ? 'Waiting for the service' : 'Waiting for the limit',
      headline: isAsked ? 'The service asked for a break.' : limitHeadline(budget, now),
      next: `The sync goes on by itself, ${ahead}, when the service allows more.`,
    };
  }
  return {
    tone: 'wait',
    label: 'Waiting',
    headline: 'The sync waits for its turn.',
    next: 'It goes on by itself. There is nothing to do.',
  };
}

function failedMessage(status: InstanceStatus, failed: readonly NamedList[], now: number): InstanceMessage {
  const ahead = formatAhead(status.next_sync_at, now);
  const again = ahead
    ? `The app tries again by itself ${ahead}; press “Sync now” to try at once.`
    : 'Press “Sync now” to go on.';
  return {
    tone: 'bad',
    label: 'Needs attention',
    headline: `The sync of ${titlesOf(failed)} has stopped.`,
    next: `What went wrong stands below. ${again}`,
  };
}

/** Whether there is anything that a worker would do now. */
function hasWork(status: InstanceStatus, lists: readonly NamedList[], now: number): boolean {
  const due = instantOf(status.next_sync_at);
  const isUnderWay = ({ state, finished_at }: ListStatusJson) =>
    state === 'waiting' || state === 'running' || finished_at === null;
  return (due !== undefined && due <= now) || lists.some((list) => isUnderWay(list.status));
}

function finishedMessage(status: InstanceStatus, lists: readonly NamedList[], now: number): InstanceMessage {
  const finished = lists.map((list) => list.status.finished_at).filter((date) => date !== null);
  const ahead = formatAhead(status.next_sync_at, now);
  const next = ahead ? `The next sync starts by itself ${ahead}.` : 'Press “Sync now” to sync again.';
  const held = lists.filter((list) => list.status.held_deletions > 0);
  if (held.length > 0) {
    return {
      tone: 'warn',
      label: 'Deletions held',
      headline: `The last sync holds back its deletions of ${titlesOf(held)}. Nothing was deleted.`,
      next: `Read the notice below, and confirm the deletions if they are right. ${next}`,
    };
  }
  const failing = lists.filter((list) => isHandlerFailing(list.status));
  if (failing.length > 0) {
    return {
      tone: 'warn',
      label: 'Needs attention',
      headline: `The copy is up to date, but the handler did not take all ${titlesOf(failing)}.`,
      next: `The people who run the app have to look: the reason stands below. ${next}`,
    };
  }
  const hasRejected = lists.some((list) => list.status.problems.rejected > 0);
  const rejected = 'Some records cannot be kept: correct them at the service. They stand below. ';
  return {
    tone: 'good',
    label: 'Up to date',
    headline: `The last sync finished ${formatAgo(finished.sort().at(-1), now)}.`,
    next: `${hasRejected ? rejected : ''}${next}`,
  };
}

function activeMessage(status: InstanceStatus, lists: readonly NamedList[], now: number): InstanceMessage {
  if (status.workers_missing && hasWork(status, lists, now)) {
    return {
      tone: 'bad',
      label: 'Stands still',
      headline: 'No worker of the app runs, so nothing is copied.',
      next: 'The people who run the app have to start one. It goes on by itself then, where it stopped.',
    };
  }
  const inState = (...states: ListStatusJson['state'][]) =>
    lists.filter((list) => states.includes(list.status.state));
  const copying = inState('running').filter((list) => !isRetried(list.status));
  if (copying.length > 0) {
    return {
      tone: 'busy',
      label: 'Syncing',
      headline: `Copying ${titlesOf(copying)}.`,
      next: 'You can leave this page; the sync goes on without it.',
    };
  }
  const waiting = inState('running', 'waiting');
  if (waiting.length > 0) return waitingMessage(status.budget, waiting, now);
  const failed = inState('failed');
  if (failed.length > 0) return failedMessage(status, failed, now);
  if (lists.length === 0 || lists.some((list) => list.status.finished_at === null)) {
    return {
      tone: 'wait',
      label: 'Starting',
      headline: 'The first sync starts in a moment.',
      next: 'There is nothing to do.',
    };
  }
  return finishedMessage(status, lists, now);
}

/** Where the service does not say which company it is, every install is an instance of its own. */
const BEGINS_ANEW = 'A new authorization begins a copy of its own.';

/**
 * Says how an instance is and what to do.
 *
 * @param now milliseconds since 1970 on the local clock, which runs and schedules go by
 */
export function instanceMessage(
  status: InstanceStatus,
  resources: readonly WebResource[],
  now: number,
): InstanceMessage {
  const isKnown = status.company_id !== null;
  switch (status.status) {
    case 'paused':
      return {
        tone: 'off',
        label: 'Paused',
        headline: 'Nothing is copied at the moment.',
        next: 'The copy stays as it is. Press “Resume” to go on where it stopped.',
      };
    case 'needs_reauthorization':
      return {
        tone: 'warn',
        label: 'Needs authorization',
        headline: 'The sync has stopped: the app needs a new authorization.',
        // The notice, where there is one, says why and what to do.
        next: status.notice
          ? ''
          : `Nothing was deleted. ${isKnown ? 'Authorize again, and the sync goes on where it stopped.' : BEGINS_ANEW}`,
      };
    case 'disconnected': {
      const isKept = status.has_copy && !status.deleting_copy;
      const gone = status.deleting_copy
        ? 'Its copied records are being deleted.'
        : 'Nothing is kept of its records.';
      const kept = isKept ? 'What was copied is kept.' : gone;
      const again = isKept
        ? 'Install again to bring the copy up to date.'
        : 'Install again to copy them anew.';
      return {
        tone: 'off',
        label: 'Disconnected',
        headline: isKnown
          ? 'The app has no access to this company any more.'
          : 'This installation has ended.',
        next: `${kept} ${isKnown ? again : BEGINS_ANEW}`,
      };
    }
    case 'active': {
      const named = resources.flatMap(({ name, title }) => {
        const list = status.resources[name];
        return list ? [{ title, status: list }] : [];
      });
      return activeMessage(status, named, now);
    }
  }
}
