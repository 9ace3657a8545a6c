import type { inboxesRoutes } from '../../../contract/api/inboxes.ts';
import { listPage } from '../list.ts';
import { type Handlers, reach, show } from '../request.ts';

export const inboxesHandlers: Handlers<keyof typeof inboxesRoutes> = {
  listInboxes: (request) => listPage(request, request.tables.inboxes),
  getInbox: (request) =>
    show(request, request.tables.inboxes, reach(request, request.tables.inboxes, request.params.inbox_id)),
};
