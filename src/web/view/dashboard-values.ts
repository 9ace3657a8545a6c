import type { InstanceStatus, ListStatusJson } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { budgetValues } from './budget-values.ts';
import { instanceMessage, isRetried } from './instance-message.ts';
import { listValues, type RecordsPerSecond } from './list-values.ts';
import { type LiveValues, mergeLiveValues } from './live-values.ts';
import { problemsShown, problemValues } from './problem-values.ts';
import { tokenValues } from './token-values.ts';

/** Whether there is anything that a sync could start. */
function canSync({ state }: ListStatusJson): boolean {
  return state === 'idle' || state === 'failed';
}

/** Whether a new authorization may help, although the app has one. */
function mayNeedAuthorization(list: ListStatusJson): boolean {
  return list.error_kind === 'refused' && (list.state === 'failed' || isRetried(list));
}

/**
 * Every changing value of an instance's page.
 *
 * @param paces records per second by resource, as far as known
 * @param now milliseconds since 1970, local clock
 */
export function dashboardValues(
  status: InstanceStatus,
  resources: readonly WebResource[],
  paces: Record<string, RecordsPerSecond>,
  now: number,
): LiveValues {
  const message = instanceMessage(status, resources, now);
  const known = resources.flatMap((resource) => {
    const list = status.resources[resource.name];
    return list ? [{ resource, list }] : [];
  });
  const lists = known.map(({ list }) => list);
  return mergeLiveValues([
    {
      text: {
        'state.label': message.label,
        'state.headline': message.headline,
        'state.next': message.next,
        notice: status.notice ?? '',
      },
      time: {},
      attributes: { 'state.tone': { 'data-tone': message.tone } },
      show: {
        'state.next': message.next !== '',
        notice: status.notice !== null,
        'action.sync': lists.some(canSync),
        'action.authorize': lists.some(mayNeedAuthorization),
        'action.delete': status.has_copy,
        'action.forget': !status.has_copy,
      },
    },
    ...known.flatMap(({ resource, list }) => [
      listValues(resource, list, status, paces[resource.name], now),
      problemValues(resource.name, list),
    ]),
    problemsShown(lists),
    budgetValues(status.budget, now),
    tokenValues(status),
  ]);
}
