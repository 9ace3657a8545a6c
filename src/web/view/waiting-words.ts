import type { InstanceStatus, ResourceStatus } from '../../sync/status-types.ts';
import { isBlocked, LOW_SHARE, remainingNow } from './budget-values.ts';
import { formatAhead, listOf } from './format.ts';
import type { InstanceWords } from './instance-words.ts';
import { type TroubleKind, troubleKind } from './trouble-kind.ts';

/** How an error ends after which the service asked for a wait (src/sync/slice-failure.ts). */
const ASKED_TO_WAIT = / It asked to wait before the next try\.$/;

/** What somebody can do where the service refuses to renew the access: that may pass, or stay. */
export const NOT_RENEWED_ADVICE = 'If it stays like this for hours, authorize the app again: that may help.';

/** A resource with the title that it has on the page. */
export interface NamedResource {
  title: string;
  status: ResourceStatus;
}

/** Whether the last try failed: it waits for another, or is at it, and has brought nothing since. */
export function isRetried({ state, waiting_for, error }: ResourceStatus): boolean {
  return (state === 'waiting' && waiting_for === 'retry') || (state === 'running' && error !== null);
}

function aheadOf(waiting: NamedResource[], now: number): string {
  const until = waiting.map(({ status }) => status.waiting_until).filter((date) => date !== null);
  return formatAhead(until.sort()[0], now) || 'any moment';
}

function retryWords(retried: NamedResource[], ahead: string): InstanceWords {
  const of = (kind: TroubleKind) => retried.filter(({ status }) => troubleKind(status.error) === kind);
  const ownFailed = of('own logic');
  if (ownFailed.length > 0) {
    return {
      tone: 'warn',
      label: 'Trying again',
      headline: `The app’s own logic failed on ${listOf(ownFailed.map(({ title }) => title))}.`,
      next: `It is tried again by itself, ${ahead}. If that does not help, the people who run the app have to look: what went wrong stands below.`,
    };
  }
  if (of('app').length > 0) {
    return {
      tone: 'warn',
      label: 'Trying again',
      headline: 'The app itself has trouble.',
      next: `It tries again by itself, ${ahead}. If that does not help, the people who run the app have to look: what went wrong stands below.`,
    };
  }
  if (of('not renewed').length > 0) {
    return {
      tone: 'warn',
      label: 'Trying again',
      headline: 'The service refuses to renew the app’s access.',
      next: `The app tries again by itself, ${ahead}. ${NOT_RENEWED_ADVICE}`,
    };
  }
  const isAsked = retried.every(({ status }) => ASKED_TO_WAIT.test(status.error ?? ''));
  return {
    tone: 'wait',
    label: isAsked ? 'Waiting for the service' : 'Trying again',
    headline: isAsked
      ? 'The service has trouble, and asked to wait.'
      : 'The service did not answer as it should.',
    next: `The app tries again by itself, ${ahead}. There is nothing to do.`,
  };
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

/** The same as the budget's card says. */
function limitWords(budget: InstanceStatus['budget'], ahead: string, now: number): InstanceWords {
  const next = `The sync goes on by itself, ${ahead}, when the service allows more.`;
  if (isBlocked(budget, now)) {
    return {
      tone: 'wait',
      label: 'Waiting for the service',
      headline: 'The service asked for a break.',
      next,
    };
  }
  return { tone: 'wait', label: 'Waiting for the limit', headline: limitHeadline(budget, now), next };
}

/**
 * Says what a sync waits for, of which no part gets on just now.
 *
 * @param waiting what waits, or is tried again
 * @param now milliseconds since 1970, local clock
 */
export function waitingWords(
  budget: InstanceStatus['budget'],
  waiting: NamedResource[],
  now: number,
): InstanceWords {
  const ahead = aheadOf(waiting, now);
  const retried = waiting.filter(({ status }) => isRetried(status));
  if (retried.length > 0) return retryWords(retried, ahead);
  const atWork = waiting.filter(({ status }) => troubleKind(status.error) === 'at work');
  if (atWork.length > 0 && atWork.length === waiting.length) {
    return {
      tone: 'wait',
      label: 'Own logic at work',
      headline: `The app’s own logic is at work on ${listOf(atWork.map(({ title }) => title))}.`,
      next: 'The sync goes on by itself when that is done. There is nothing to do.',
    };
  }
  if (waiting.some(({ status }) => status.waiting_for === 'limit')) return limitWords(budget, ahead, now);
  return {
    tone: 'wait',
    label: 'Waiting',
    headline: 'The sync waits for its turn.',
    next: 'It goes on by itself. There is nothing to do.',
  };
}
