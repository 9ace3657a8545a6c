import type { InstanceState, InstanceStatus } from '../../sync/status-types.ts';

/** What an administrator can do to an instance by button. */
export type InstanceAction =
  | 'sync'
  | 'retry'
  | 'pause'
  | 'resume'
  | 'logout-others'
  | 'disconnect'
  | 'forget';

const ACTIONS: Record<Exclude<InstanceState, 'disconnected'>, readonly InstanceAction[]> = {
  active: ['sync', 'retry', 'pause', 'logout-others', 'disconnect'],
  paused: ['resume', 'logout-others', 'disconnect'],
  needs_reauthorization: ['logout-others', 'disconnect'],
};

/**
 * The actions that make sense in a state; authorizing again is a link to the install, not an action.
 * A company that is disconnected already can be disconnected once more to delete its copy, and forgotten when
 * nothing is kept of it. Other browsers do not see it any more, but whoever has a copy of this one's cookie may.
 */
export function actionsFor(status: InstanceStatus): readonly InstanceAction[] {
  if (status.status !== 'disconnected') return ACTIONS[status.status];
  return status.has_copy ? ['logout-others', 'disconnect'] : ['forget'];
}
