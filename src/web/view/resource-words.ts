import type { InstanceStatus, ResourceStatus } from '../../sync/status-types.ts';
import { isBlocked } from './budget-values.ts';
import { formatAhead } from './format.ts';
import type { Tone } from './instance-words.ts';
import { troubleKind } from './trouble-kind.ts';
import { isRetried } from './waiting-words.ts';

/** The state of a resource in a word or two, and what it waits for (empty when for nothing). */
export interface ResourceWords {
  label: string;
  tone: Tone;
  wait: string;
}

/** What counts of a resource's instance. */
export type InstanceOfResource = Pick<InstanceStatus, 'status' | 'budget' | 'deleting_copy'>;

const WAITS_FOR: Record<'limit' | 'retry' | 'turn', string> = {
  limit: 'Waiting for the service’s limit',
  retry: 'Waiting before the next try',
  turn: 'Waiting for its turn',
};

function waitText(resource: ResourceStatus, budget: InstanceStatus['budget'], now: number): string {
  if (troubleKind(resource.error) === 'at work') return 'Waiting for the app’s own logic.';
  const isAsked = resource.waiting_for === 'limit' && isBlocked(budget, now);
  const known = resource.waiting_for ? WAITS_FOR[resource.waiting_for] : 'Waiting';
  const reason = isAsked ? 'Waiting, as the service asked for a break' : known;
  const ahead = formatAhead(resource.waiting_until, now);
  return ahead ? `${reason}; goes on ${ahead}.` : `${reason}.`;
}

function runWords(resource: ResourceStatus, budget: InstanceStatus['budget'], now: number): ResourceWords {
  switch (resource.state) {
    case 'running':
      if (isRetried(resource)) return { label: 'Trying again', tone: 'wait', wait: '' };
      return { label: 'Copying', tone: 'busy', wait: '' };
    case 'waiting':
      return { label: 'Waiting', tone: 'wait', wait: waitText(resource, budget, now) };
    case 'failed':
      return { label: 'Stopped', tone: 'bad', wait: '' };
    case 'idle':
      return resource.finished_at
        ? { label: 'Complete', tone: 'good', wait: '' }
        : { label: 'Not started', tone: 'off', wait: '' };
  }
}

/**
 * Says how a resource is. What the instance's state has stopped neither waits nor runs, whatever its run says.
 *
 * @param now milliseconds since 1970, local clock, which runs go by
 */
export function resourceWords(
  resource: ResourceStatus,
  { status, budget, deleting_copy }: InstanceOfResource,
  now: number,
): ResourceWords {
  if (status === 'disconnected') {
    const kept = deleting_copy ? 'Being deleted' : 'Kept';
    return { label: resource.stored > 0 ? kept : 'Empty', tone: 'off', wait: '' };
  }
  const complete = resource.state === 'idle' && resource.finished_at !== null;
  if (status === 'active' || complete) return runWords(resource, budget, now);
  return status === 'paused'
    ? { label: 'Paused', tone: 'off', wait: '' }
    : { label: 'Stopped', tone: 'warn', wait: 'Goes on once the app is authorized again.' };
}
