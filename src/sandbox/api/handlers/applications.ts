import type { applicationsRoutes } from '../../../contract/api/applications.ts';
import { Problem } from '../../http/answer.ts';
import { listWhere } from '../list.ts';
import { type ApiContext, type ApiRequest, type Handlers, own, reach, seconds, show } from '../request.ts';

/**
 * The client id of the application in the path. Throws a `Problem`: 404 when there is none with that, 403 when the token
 * is of another application (an API token may speak for any).
 */
function applicationOf({ world, caller }: ApiContext, clientId: string): string {
  if (world.applications.get(clientId) === undefined) throw new Problem(404, `There is no ${clientId} here.`);
  if (caller.application !== undefined && caller.application !== clientId) {
    throw new Problem(403, `The token is of ${caller.application}, not of ${clientId}.`);
  }
  return clientId;
}

function createApplicationEvent(request: ApiRequest<'createApplicationEvent'>) {
  const { application_events: events } = request.tables;
  const application = applicationOf(request, request.params.application_uid);
  const event = events.add((id) => ({
    object: null,
    payload: {},
    ...own(request.body),
    type: request.body.type,
    id,
    application_uid: application,
    status: 'accepted',
    created_at: seconds(request.now),
  }));
  return show(request, events, event);
}

export const applicationsHandlers: Handlers<keyof typeof applicationsRoutes> = {
  listApplicationEvents: (request) => {
    const application = applicationOf(request, request.params.application_uid);
    return listWhere(
      request,
      request.tables.application_events,
      ({ application_uid }) => application_uid === application,
    );
  },
  createApplicationEvent,
  getApplicationEvent: (request) => {
    const { application_events: events } = request.tables;
    const application = applicationOf(request, request.params.application_uid);
    const event = reach(request, events, request.params.event_id);
    if (event.application_uid !== application) throw new Problem(404, `There is no ${event.id} here.`);
    return show(request, events, event);
  },
};
