import type { identityRoutes } from '../../../contract/api/identity.ts';
import type { Handlers } from '../request.ts';

export const identityHandlers: Handlers<keyof typeof identityRoutes> = {
  getIdentity: ({ call, company: { id, name } }) => ({
    _links: { self: `${call.baseUrl}${call.path}` },
    id,
    name,
  }),
};
