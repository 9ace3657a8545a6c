import type { InstanceStatus, ResourceStatus } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { formatAgo, formatAhead, instantOf, listOf } from './format.ts';
import { type TroubleKind, troubleKind } from './trouble-kind.ts';
import { isRetried, type NamedResource, NOT_RENEWED_ADVICE, waitingWords } from './waiting-words.ts';

/** Colours the state; words always say the same. */
export type Tone = 'good' | 'busy' | 'wait' | 'warn' | 'bad' | 'off';

/** The state of an instance in words: two of them, a sentence, and what to do or what happens next. */
export interface InstanceWords {
  tone: Tone;
  label: string;
  headline: string;
  next: string;
}

function nextSync(status: InstanceStatus, now: number): string {
  const ahead = formatAhead(status.next_sync_at, now);
  return ahead ? `The next sync starts by itself ${ahead}.` : 'Press “Sync now” to sync again.';
}

/** What somebody has to do, where trying again hardly helps. */
const FAILED_ADVICE: Partial<Record<TroubleKind, string>> = {
  forbidden:
    'The service does not let the app read that. Authorize the app again, as an administrator who may; if that does not help, ask the people who run the app.',
  refused: 'The service refuses what the app asks for: tell the people who run the app what stands below.',
  'not renewed': NOT_RENEWED_ADVICE,
  app: 'The app itself had trouble: if it stays, tell the people who run the app.',
  'own logic': 'The people who run the app have to look.',
};

function failedWords(status: InstanceStatus, failed: NamedResource[], now: number): InstanceWords {
  const kinds = failed.map((resource) => troubleKind(resource.status.error));
  if (kinds.includes('credentials')) {
    return {
      tone: 'bad',
      label: 'Stands still',
      headline: 'The service does not accept the credentials of the app itself.',
      next: 'The people who run the app have to put them right. It goes on by itself then, where it stopped: there is nothing for you to do.',
    };
  }
  const kind = kinds.includes('forbidden') ? 'forbidden' : kinds.find((one) => FAILED_ADVICE[one]);
  const advice = kind && FAILED_ADVICE[kind];
  const ahead = formatAhead(status.next_sync_at, now);
  const again = ahead
    ? `It is tried again by itself ${ahead}; press “Sync now” to try at once.`
    : 'Press “Sync now” to go on.';
  return {
    tone: 'bad',
    label: 'Needs a look',
    headline: `The sync of ${listOf(failed.map(({ title }) => title))} has stopped.`,
    next: `${advice ?? 'What went wrong stands below.'} ${again}`,
  };
}

/** Whether there is anything that a worker would do now. */
function hasWork(status: InstanceStatus, resources: NamedResource[], now: number): boolean {
  const due = instantOf(status.next_sync_at);
  const isUnderWay = ({ state, finished_at }: ResourceStatus) =>
    state === 'waiting' || state === 'running' || finished_at === null;
  return (due !== undefined && due <= now) || resources.some((resource) => isUnderWay(resource.status));
}

function finishedWords(status: InstanceStatus, resources: NamedResource[], now: number): InstanceWords {
  const finished = resources.map((resource) => resource.status.finished_at).filter((date) => date !== null);
  const next = nextSync(status, now);
  const parked = resources.filter((resource) => resource.status.set_aside.parked > 0);
  if (parked.length > 0) {
    return {
      tone: 'warn',
      label: 'Needs a look',
      headline: `The copy is up to date, but the app’s own logic did not take all ${listOf(parked.map(({ title }) => title))}.`,
      next: `What it did not take stands below, for the people who run the app to mend, and is tried again by every sync. ${next}`,
    };
  }
  const hasUnkept = resources.some((resource) => resource.status.set_aside.quarantined > 0);
  const unkept = 'What could not be kept stands below: it has to be mended at the service. ';
  return {
    tone: 'good',
    label: 'Up to date',
    headline: `The last sync finished ${formatAgo(finished.sort().at(-1), now)}.`,
    next: `${hasUnkept ? unkept : ''}${next}`,
  };
}

function activeWords(status: InstanceStatus, resources: NamedResource[], now: number): InstanceWords {
  if (status.workers_missing && hasWork(status, resources, now)) {
    return {
      tone: 'bad',
      label: 'Stands still',
      headline: 'No worker of the app runs, so nothing is copied.',
      next: 'The people who run the app have to start one. It goes on by itself then, where it stopped.',
    };
  }
  const inState = (...states: ResourceStatus['state'][]) =>
    resources.filter((resource) => states.includes(resource.status.state));
  const copying = inState('running').filter((resource) => !isRetried(resource.status));
  if (copying.length > 0) {
    return {
      tone: 'busy',
      label: 'Syncing',
      headline: `Copying ${listOf(copying.map(({ title }) => title))}.`,
      next: 'You can leave this page; the sync goes on without it.',
    };
  }
  const waiting = inState('running', 'waiting');
  if (waiting.length > 0) return waitingWords(status.budget, waiting, now);
  const failed = inState('failed');
  if (failed.length > 0) return failedWords(status, failed, now);
  if (resources.length === 0 || resources.some((resource) => resource.status.finished_at === null)) {
    return {
      tone: 'wait',
      label: 'Starting',
      headline: 'The first sync starts in a moment.',
      next: 'There is nothing to do.',
    };
  }
  return finishedWords(status, resources, now);
}

/** Where the service does not say which company it is, there may be more of it under other installations. */
const BEGINS_ANEW = 'A new authorization begins a copy of its own.';

/**
 * Says how an instance is and what to do.
 *
 * @param now milliseconds since 1970 on the local clock, which runs and schedules go by
 */
export function instanceWords(status: InstanceStatus, resources: WebResource[], now: number): InstanceWords {
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
        const resource = status.resources[name];
        return resource ? [{ title, status: resource }] : [];
      });
      return activeWords(status, named, now);
    }
  }
}
