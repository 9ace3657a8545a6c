import type { InstanceStatus } from '../sync/status-types.ts';
import type { Presented } from './instance-feed.ts';
import { PaceMeter } from './pace-meter.ts';
import { dashboardValues } from './view/dashboard-values.ts';
import type { LiveValues } from './view/live-values.ts';
import type { WebResource } from './web-dependencies.ts';

/**
 * Turns the states of one instance into the events of its stream: the status as `GET /instances/:id/status`
 * answers it, and under `view` the values that the open page shows.
 *
 * @param now milliseconds since 1970, local clock
 */
export function livePresenter(
  resources: readonly WebResource[],
  now: () => number,
): (status: InstanceStatus) => Presented {
  const meter = new PaceMeter();
  return (status) => {
    const paces = meter.observe(status, performance.now());
    const view = dashboardValues(status, resources, paces, now());
    return {
      data: JSON.stringify({ ...status, view }),
      // The clock alone is no news.
      gist: JSON.stringify({ ...status, now: undefined, view }),
    };
  };
}

/** The event that tells open pages that the app cannot read its own store, with the values that they show then. */
export function outageEvent(resources: readonly WebResource[]): Presented {
  const data = JSON.stringify({ view: outageValues(resources) });
  return { event: 'outage', data, gist: data };
}

/** Nothing that changes by the second goes on as if it still did; what was in the copy stays. */
function outageValues(resources: readonly WebResource[]): LiveValues {
  const values: LiveValues = {
    text: {
      'state.label': 'Out of order',
      'state.headline': 'The app cannot reach its own store, so nothing new is copied.',
      'state.next':
        'Nothing is lost, and it goes on by itself when that is over. If it stays, tell the people who run the app.',
      'budget.remaining': '–',
      'budget.limit': 'not known now',
      'budget.spoken': 'Not known now',
      'budget.window': '',
    },
    time: {},
    attributes: { 'state.tone': { 'data-tone': 'bad' }, 'budget.arc': { visibility: 'hidden' } },
    show: { 'state.next': true, notice: false, 'action.sync': false, 'budget.burst': false },
  };
  for (const { name } of resources) {
    values.text[`${name}.state`] = 'Not known';
    values.attributes[`${name}.tone`] = { 'data-tone': 'off' };
    for (const part of ['bar', 'pace', 'wait']) values.show[`${name}.${part}`] = false;
  }
  return values;
}
