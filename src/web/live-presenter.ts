import type { InstanceStatus } from '../sync/status-types.ts';
import type { Presented } from './instance-feed.ts';
import { PaceMeter } from './pace-meter.ts';
import { dashboardValues } from './view/dashboard-values.ts';
import { troubleValues } from './view/trouble-values.ts';
import type { WebResource } from './web-dependencies.ts';

/**
 * Turns the states of one instance into the events of its stream: the status as `GET /instances/:id/status`
 * answers it, and under `view` the values that the open page shows.
 *
 * @param now milliseconds since 1970, local clock
 */
export function livePresenter(
  resources: WebResource[],
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
export function troubleEvent(resources: WebResource[]): Presented {
  const data = JSON.stringify({ view: troubleValues(resources) });
  return { event: 'trouble', data, gist: data };
}
