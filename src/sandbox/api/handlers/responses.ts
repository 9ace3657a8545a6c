import type { responsesRoutes } from '../../../contract/api/responses.ts';
import { listPage } from '../list.ts';
import { type Handlers, reach, show } from '../request.ts';

export const responsesHandlers: Handlers<keyof typeof responsesRoutes> = {
  listResponses: (request) => listPage(request, request.tables.responses),
  getResponse: (request) => {
    const { responses } = request.tables;
    return show(request, responses, reach(request, responses, request.params.response_id));
  },
};
