import type { InstanceStatus, ResourceStatus } from '../../sync/status-types.ts';
import type { WebResource } from '../web-dependencies.ts';
import { budgetValues } from './budget-values.ts';
import { instanceWords } from './instance-words.ts';
import { type LiveValues, mergeLiveValues } from './live-values.ts';
import { type RecordsPerSecond, resourceValues } from './resource-values.ts';
import { setAsideShown, setAsideValues } from './set-aside-values.ts';
import { tokenValues } from './token-values.ts';
import { troubleKind } from './trouble-kind.ts';
import { isRetried } from './waiting-words.ts';

/** Whether there is anything that a sync could start. */
function canSync(status: InstanceStatus, resources: WebResource[]): boolean {
  const states = resources.map(({ name }) => status.resources[name]?.state);
  return states.some((state) => state === 'idle' || state === 'failed');
}

/** Whether a new authorization may help, although the app has one. */
function mayNeedAuthorization(resource: ResourceStatus): boolean {
  const kind = troubleKind(resource.error);
  if (resource.state === 'failed') return kind === 'forbidden' || kind === 'not renewed';
  return isRetried(resource) && kind === 'not renewed';
}

/**
 * Every changing value of an instance's page.
 *
 * @param paces records per second by resource, as far as known
 * @param now milliseconds since 1970, local clock
 */
export function dashboardValues(
  status: InstanceStatus,
  resources: WebResource[],
  paces: Record<string, RecordsPerSecond>,
  now: number,
): LiveValues {
  const words = instanceWords(status, resources, now);
  const known = resources.flatMap(({ name }) => {
    const resource = status.resources[name];
    return resource ? [{ name, resource }] : [];
  });
  const parts = known.flatMap(({ name, resource }) => [
    resourceValues(name, resource, status, paces[name], now),
    ...setAsideValues(name, resource),
  ]);
  const aside = known.map(({ resource }) => resource);
  return mergeLiveValues([
    {
      text: {
        'state.label': words.label,
        'state.headline': words.headline,
        'state.next': words.next,
        notice: status.notice ?? '',
      },
      time: {},
      attributes: { 'state.tone': { 'data-tone': words.tone } },
      show: {
        'state.next': words.next !== '',
        notice: status.notice !== null,
        'action.sync': canSync(status, resources),
        'action.authorize': aside.some(mayNeedAuthorization),
        'action.delete': status.has_copy,
        'action.forget': !status.has_copy,
      },
    },
    ...parts,
    setAsideShown(aside, status.status),
    budgetValues(status.budget, now),
    tokenValues(status),
  ]);
}
