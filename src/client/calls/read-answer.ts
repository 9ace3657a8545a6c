import type { RouteContract } from '../../contract/api/route.ts';
import { ServiceError } from '../errors.ts';
import type { HttpAnswer } from '../http.ts';
import { checkListPage } from '../list-page.ts';

/**
 * The JSON of an answer, undefined when there is nothing in it; the text where the route answers something else.
 *
 * @throws ServiceError to wait on, when it cannot be read, or is no page where the route answers pages
 */
export function readAnswer(contract: RouteContract, { body }: HttpAnswer): unknown {
  if (contract.mediaType !== undefined) return body;
  if (body === '' && !contract.list) return undefined;
  let answer: unknown;
  try {
    answer = JSON.parse(body);
  } catch (error) {
    throw new ServiceError('wait', 'The service sent an answer that cannot be read: it is not JSON.', {
      cause: error,
    });
  }
  if (contract.list) checkListPage(answer);
  return answer;
}
