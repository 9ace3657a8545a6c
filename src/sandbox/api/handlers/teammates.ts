import type { CheckedBodyOf } from '../../../contract/api/api.ts';
import type { teammatesRoutes } from '../../../contract/api/teammates.ts';
import { SCOPE } from '../../../contract/scopes.ts';
import { namesOfParts, namesOfWhole, type Teammate, type TeammateNames } from '../../data/teammates.ts';
import { Problem } from '../../http/answer.ts';
import { listPage, listWhere } from '../list.ts';
import { type ApiRequest, type Handlers, own, reach, reachesPrivate, seconds, show } from '../request.ts';

/** The names after a change. Throws a `Problem` (422) when nothing would be left of them. */
function namesAfter(teammate: Teammate, body: CheckedBodyOf<'updateTeammate'>): TeammateNames {
  const { first_name: first, last_name: last, name } = body;
  if (first === undefined && last === undefined) return name === undefined ? teammate : namesOfWhole(name);
  const names = namesOfParts(first ?? teammate.first_name, last ?? teammate.last_name);
  if (names.name === '') throw new Problem(422, 'first_name, last_name: one of them is needed.');
  return names;
}

function updateTeammate(request: ApiRequest<'updateTeammate'>) {
  const { teammates } = request.tables;
  const { body, params, now } = request;
  const teammate = reach(request, teammates, params.teammate_id);
  if (body.signature !== undefined && !reachesPrivate(request)) {
    throw new Problem(403, `signature is private: it takes an API token with the scope ${SCOPE.private}.`);
  }
  const { first_name, last_name, name } = namesAfter(teammate, body);
  const { email, is_admin, is_blocked } = teammate;
  const kept = { email, is_admin, is_blocked, first_name, last_name, name, updated_at: seconds(now) };
  return show(request, teammates, teammates.replace({ ...teammate, ...own(body), ...kept }));
}

export const teammatesHandlers: Handlers<keyof typeof teammatesRoutes> = {
  listTeammates: (request) => listPage(request, request.tables.teammates),
  getTeammate: (request) => {
    const { teammates } = request.tables;
    return show(request, teammates, reach(request, teammates, request.params.teammate_id));
  },
  updateTeammate,
  listTeammateInboxes: (request) => {
    const { inboxes, teammates } = request.tables;
    const { id } = reach(request, teammates, request.params.teammate_id);
    return listWhere(request, inboxes, ({ teammate_ids }) => teammate_ids.includes(id));
  },
};
