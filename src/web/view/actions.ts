import type { InstanceState } from '../../store/states.ts';
import type { InstanceStatus } from '../../sync/status-types.ts';

/** What an administrator can do to one list by a button; without a list, to all lists of an instance. */
const LIST_ACTIONS = ['sync', 'retry', 'replay', 'confirm-deletions'] as const;
const INSTANCE_ACTIONS = [
  ...LIST_ACTIONS,
  'pause',
  'resume',
  'logout-others',
  'disconnect',
  'forget',
] as const;

/** What an administrator can do to an instance by a button. */
export type InstanceAction = (typeof INSTANCE_ACTIONS)[number];

const ACTIONS: Record<Exclude<InstanceState, 'disconnected'>, readonly InstanceAction[]> = {
  active: [...LIST_ACTIONS, 'pause', 'logout-others', 'disconnect'],
  paused: ['resume', 'confirm-deletions', 'logout-others', 'disconnect'],
  needs_reauthorization: ['logout-others', 'disconnect'],
};

/** The action that the address of a form names; undefined when there is none. */
export function findAction(name: string, ofList: boolean): InstanceAction | undefined {
  return (ofList ? LIST_ACTIONS : INSTANCE_ACTIONS).find((action) => action === name);
}

/**
 * The actions that make sense in a state; authorizing again is a link to the install, not an action.
 * A company that is disconnected already can be disconnected once more to delete its copy, and forgotten when
 * nothing is kept of it. Other browsers do not see it any more, but a copy of this browser's cookie may.
 */
export function actionsFor(status: InstanceStatus): readonly InstanceAction[] {
  if (status.status === 'disconnected') return status.has_copy ? ['logout-others', 'disconnect'] : ['forget'];
  const hasHandler = Object.values(status.resources).some(({ handler }) => handler !== null);
  return ACTIONS[status.status].filter((action) => hasHandler || (action !== 'retry' && action !== 'replay'));
}
