import type { channelsRoutes } from '../../../contract/api/channels.ts';
import { channelIdentity } from '../../outgoing/channel-identity.ts';
import { listPage, listWhere } from '../list.ts';
import { type ApiRequest, type Handlers, own, reach, seconds, show } from '../request.ts';

async function createChannel(request: ApiRequest<'createChannel'>) {
  const { channels, inboxes } = request.tables;
  const inbox = reach(request, inboxes, request.params.inbox_id);
  // An external service's name and address go before those that were sent.
  const body = { ...request.body, ...(await channelIdentity(request, request.body)) };
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
