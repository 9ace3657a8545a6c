import type { linksRoutes } from '../../../contract/api/links.ts';
import { listPage } from '../list.ts';
import { type ApiRequest, type Handlers, own, reach, seconds, show } from '../request.ts';

function createLink(request: ApiRequest<'createLink'>) {
  const { links } = request.tables;
  const { body } = request;
  const at = seconds(request.now);
  const link = links.add((id) => ({
    type: 'web',
    custom_fields: {},
    ...own(body),
    name: body.name ?? body.external_url ?? id,
    external_url: body.external_url ?? null,
    id,
    created_at: at,
    updated_at: at,
  }));
  return show(request, links, link);
}

export const linksHandlers: Handlers<keyof typeof linksRoutes> = {
  listLinks: (request) => listPage(request, request.tables.links),
  createLink,
  getLink: (request) =>
    show(request, request.tables.links, reach(request, request.tables.links, request.params.link_id)),
};
