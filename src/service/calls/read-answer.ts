import type { RouteContract } from '../../contract/api/route.ts';
import type { HttpAnswer } from '../http.ts';
import { checkListPage } from '../list-page.ts';
import { readJson } from '../read-json.ts';

/**
 * The JSON of an answer, undefined when there is nothing in it; the text where the route answers something else.
 *
 * @throws ServiceError to wait on, when it cannot be read, or is no page where the route answers pages
 */
export function readAnswer(contract: RouteContract, { body }: HttpAnswer): unknown {
  if (contract.mediaType !== undefined) return body;
  if (body === '' && !contract.list) return undefined;
  const answer = readJson(body, 'an answer');
  if (contract.list) checkListPage(answer);
  return answer;
}
