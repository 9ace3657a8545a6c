import type { CheckedBodyOf } from '../../../contract/api/api.ts';
import type { channelsRoutes } from '../../../contract/api/channels.ts';
import { Problem } from '../../http/answer.ts';
import { introspect } from '../../outgoing.ts';
import type { Application } from '../../state/applications.ts';
import { listPage, listWhere } from '../list.ts';
import { type ApiContext, type ApiRequest, type Handlers, own, reach, seconds, show } from '../request.ts';

/**
 * The application of a channel: the one that `settings.application_uid` names, or the one that creates it. Throws a
 * `Problem`: 422 when there is none of that name, 403 when an application names another than itself.
 */
function applicationOf({ world, caller }: ApiContext, named: unknown): Application | undefined {
  if (named === undefined) return world.applications.get(caller.application ?? '');
  const application = typeof named === 'string' ? world.applications.get(named) : undefined;
  if (application === undefined) {
    throw new Problem(422, 'settings.application_uid: no application is registered as that.');
  }
  if (caller.application !== undefined && caller.application !== application.clientId) {
    throw new Problem(403, 'settings.application_uid: an application creates channels of its own alone.');
  }
  return application;
}

/**
 * What an external service says of a new channel (Authentication, 10), in place of what was sent. It is asked about a
 * channel of the type `application` with a token, if the application has an introspection address. The token is a
 * secret of that service, and every application of the company may read channels: it is not kept. Throws a `Problem`.
 */
async function identified(request: ApiContext, { type, settings = {} }: CheckedBodyOf<'createChannel'>) {
  if (type !== 'application') return {};
  const application = applicationOf(request, settings.application_uid);
  const { token, ...kept } = settings;
  if (application?.introspectionUrl === undefined || token === undefined) return {};
  if (typeof token !== 'string' || token === '') {
    throw new Problem(422, 'settings.token: must be the text that the external service gave out.');
  }
  const url = new URL(application.introspectionUrl);
  const identity = await introspect(request.world, application, url, request.company.id, token);
  return { ...identity, settings: kept };
}

async function createChannel(request: ApiRequest<'createChannel'>) {
  const { channels, inboxes } = request.tables;
  const inbox = reach(request, inboxes, request.params.inbox_id);
  const body = { ...request.body, ...(await identified(request, request.body)) };
  const at = seconds(request.now);
  const channel = channels.add((id) => ({
    ...own(body),
    name: body.name ?? body.address ?? body.send_as ?? body.type,
    type: body.type,
    address: body.address ?? null,
    send_as: body.send_as ?? null,
    settings: body.settings ?? {},
    id,
    inbox_id: inbox.id,
    is_private: inbox.is_private,
    created_at: at,
    updated_at: at,
  }));
  return show(request, channels, channel);
}

export const channelsHandlers: Handlers<keyof typeof channelsRoutes> = {
  listChannels: (request) => listPage(request, request.tables.channels),
  getChannel: (request) =>
    show(
      request,
      request.tables.channels,
      reach(request, request.tables.channels, request.params.channel_id),
    ),
  listInboxChannels: (request) => {
    const { channels, inboxes } = request.tables;
    const inbox = reach(request, inboxes, request.params.inbox_id);
    return listWhere(request, channels, ({ inbox_id }) => inbox_id === inbox.id);
  },
  createChannel,
};
