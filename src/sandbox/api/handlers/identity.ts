import type { identityRoutes } from '../../../contract/api/identity.ts';
import { actingTeammate } from '../acting-teammate.ts';
import { type Handlers, show } from '../request.ts';

export const identityHandlers: Handlers<keyof typeof identityRoutes> = {
  getIdentity: (request) => {
    const { call, company, tables } = request;
    const teammate = actingTeammate(request);
    return {
      _links: { self: `${call.baseUrl}${call.path}` },
      id: company.id,
      name: company.name,
      ...(teammate && { teammate: show(request, tables.teammates, teammate) }),
    };
  },
};
