import type { Teammate } from '../data/teammates.ts';
import type { ApiContext } from './request.ts';

/**
 * The teammate for whom a token acts: the one who authorized it, when it is user-scoped as those of tool-protocol
 * applications are (Authentication, 3). Any other token acts for the company: undefined.
 *
 * What a user-scoped token means is our choice, as the specification only names it: `GET /me` tells the teammate, who is
 * also the author of what the token writes when no other is named. Its reach is that of every OAuth token, as rule 9
 * names no exception: not even that teammate's own private resources.
 */
export function actingTeammate({ world, caller, tables }: ApiContext): Teammate | undefined {
  const { application, teammateId } = caller;
  if (application === undefined || teammateId === undefined) return undefined;
  const isUserScoped = world.applications.get(application)?.kind === 'tool-protocol';
  return isUserScoped ? tables.teammates.find(teammateId) : undefined;
}
