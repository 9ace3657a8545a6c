import { ServiceError, toServiceError } from '../client/errors.ts';
import type { AnsweredPage } from '../client/service-api.ts';

/**
 * Looks at pages that name themselves as the next one. Such a page may be better later on, and is waited for; or the
 * service gives a whole list under one address, page after page: then each answer that is not taken is lost, and would be
 * missing from the copy. So it is asked for twice, and both answers are compared. Where nothing came of the second time,
 * what comes later cannot be told from the page after it: the run begins anew then.
 */
export class RepeatedPage {
  #first: string | undefined;
  #isOpen = false;

  /**
   * @param address where the page was
   * @returns whether it is to be asked for once more, at once
   * @throws ServiceError to give up on, when the answer before had other records
   */
  check(address: string, page: AnsweredPage): boolean {
    if (this.#first === undefined && page.next !== address) return false;
    const ids = JSON.stringify(page.read().items.map((item) => Object(item).id ?? null));
    if (this.#first === undefined) {
      this.#first = ids;
      this.#isOpen = true;
      return true;
    }
    this.#isOpen = false;
    if (ids === this.#first) return false;
    throw new ServiceError(
      'give_up',
      'The service gave other records under the address of a page that had named itself as the next one. A list whose pages have all one address cannot be copied, as what one answer held cannot be asked for again.',
    );
  }

  /**
   * To be told when there will be no answer to compare with.
   *
   * @param cause why
   * @throws ServiceError to give up on, if one was to come
   */
  end(cause?: unknown): void {
    if (!this.#isOpen) return;
    throw new ServiceError(
      'give_up',
      `The service sent a page that names itself as the next one, and it could not be asked for again at once${cause === undefined ? ', as the limit was used up' : `: ${toServiceError(cause).message}`}`,
      { cause },
    );
  }
}
