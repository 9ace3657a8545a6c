import { authorOf } from '../../data/messages.ts';
import { type ApiContext, named } from '../request.ts';

/** The teammate that a body names as author. Throws a `Problem` (422) when there is none with that id. */
export function authorNamed(request: ApiContext, id: string | undefined) {
  return id === undefined ? null : authorOf(named(request, request.tables.teammates, id));
}
