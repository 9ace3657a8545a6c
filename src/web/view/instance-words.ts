import type { InstanceStatus, ResourceStatus } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { storedRecords } from './actions.ts';
import { formatAgo, formatAhead, listOf } from './format.ts';

/** Colours the state; words always say the same. */
export type Tone = 'good' | 'busy' | 'wait' | 'warn' | 'bad' | 'off';

/** The state of an instance in words: two of them, a sentence, and what to do or what happens next. */
export interface InstanceWords {
  tone: Tone;
  label: string;
  headline: string;
  next: string;
}

/** How an error begins that the integrator's own function threw, not the service (src/sync/own-logic-call.ts). */
const OWN_LOGIC_FAILED = /^The app's own logic failed/;

interface NamedResource {
  title: string;
  status: ResourceStatus;
}

function earliest(dates: (string | null)[]): string | null {
  return dates.filter((date) => date !== null).sort()[0] ?? null;
}

function nextSync(status: InstanceStatus, now: number): string {
  const ahead = formatAhead(status.next_sync_at, now);
  return ahead ? `The next sync starts by itself ${ahead}.` : 'Press “Sync now” to sync again.';
}

function failedNext(status: InstanceStatus, now: number): string {
  const ahead = formatAhead(status.next_sync_at, now);
  return ahead
    ? `What went wrong stands below. It is tried again by itself ${ahead}; press “Sync now” to try at once.`
    : 'What went wrong stands below. Press “Sync now” to go on.';
}

function waitingWords(waiting: NamedResource[], now: number): InstanceWords {
  const until = earliest(waiting.map(({ status }) => status.waiting_until));
  const ahead = formatAhead(until, now) || 'soon';
  const retried = waiting.filter(({ status }) => status.waiting_for === 'retry');
  const ownFailed = retried.filter(({ status }) => OWN_LOGIC_FAILED.test(status.error ?? ''));
  if (ownFailed.length > 0) {
    return {
      tone: 'warn',
      label: 'Trying again',
      headline: `The app’s own logic failed on ${listOf(ownFailed.map(({ title }) => title))}.`,
      next: `It is tried again by itself, ${ahead}. If that does not help, the people who run the app have to look: what went wrong stands below.`,
    };
  }
  if (retried.length > 0) {
    return {
      tone: 'wait',
      label: 'Trying again',
      headline: 'The service did not answer as it should.',
      next: `The app tries again by itself, ${ahead}. There is nothing to do.`,
    };
  }
  if (waiting.some(({ status }) => status.waiting_for === 'limit')) {
    return {
      tone: 'wait',
      label: 'Waiting for the limit',
      headline: 'This minute’s requests are used up.',
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

function activeWords(status: InstanceStatus, resources: NamedResource[], now: number): InstanceWords {
  const inState = (state: ResourceStatus['state']) =>
    resources.filter((resource) => resource.status.state === state);
  const [running, waiting, failed] = [inState('running'), inState('waiting'), inState('failed')];
  if (running.length > 0) {
    return {
      tone: 'busy',
      label: 'Syncing',
      headline: `Copying ${listOf(running.map(({ title }) => title))}.`,
      next: 'You can leave this page; the sync goes on without it.',
    };
  }
  if (waiting.length > 0) return waitingWords(waiting, now);
  if (failed.length > 0) {
    return {
      tone: 'bad',
      label: 'Needs a look',
      headline: `The sync of ${listOf(failed.map(({ title }) => title))} has stopped.`,
      next: failedNext(status, now),
    };
  }
  const finished = resources.map((resource) => resource.status.finished_at).filter((date) => date !== null);
  if (resources.length === 0 || finished.length < resources.length) {
    return {
      tone: 'wait',
      label: 'Starting',
      headline: 'The first sync starts in a moment.',
      next: 'There is nothing to do.',
    };
  }
  const parked = resources.filter((resource) => resource.status.set_aside.parked > 0);
  if (parked.length > 0) {
    return {
      tone: 'warn',
      label: 'Needs a look',
      headline: `The copy is up to date, but the app’s own logic did not take all ${listOf(parked.map(({ title }) => title))}.`,
      next: `What it did not take stands below, and is tried again by every sync. ${nextSync(status, now)}`,
    };
  }
  return {
    tone: 'good',
    label: 'Up to date',
    headline: `The last sync finished ${formatAgo(finished.sort().at(-1), now)}.`,
    next: nextSync(status, now),
  };
}

/**
 * Says how an instance is and what to do.
 *
 * @param now milliseconds since 1970 on the local clock, which runs and schedules go by
 */
export function instanceWords(status: InstanceStatus, resources: WebResource[], now: number): InstanceWords {
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
          : 'Nothing was deleted. Authorize again, and the sync goes on where it stopped.',
      };
    case 'disconnected':
      return {
        tone: 'off',
        label: 'Disconnected',
        headline: 'The app has no access to this company any more.',
        next:
          storedRecords(status) > 0
            ? 'What was copied is kept. Install again to bring the copy up to date.'
            : 'Nothing is kept of its records. Install again to copy them anew.',
      };
    case 'active': {
      const named = resources.flatMap(({ name, title }) => {
        const resource = status.resources[name];
        return resource ? [{ title, status: resource }] : [];
      });
      return activeWords(status, named, now);
    }
  }
}
