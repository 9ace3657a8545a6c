import { ServiceError } from './errors.ts';

/** A list of more pages is taken for one without an end: a hundred million results, for which the limit needs six days. */
export const MOST_PAGES = 1_000_000;

/**
 * Notices a chain of pages that leads back to where it was, or never ends ("Only a null `next` means the end", Pagination,
 * 4). Of all addresses it keeps one, that of the newest page whose number is a power of two: so a circle of n pages that
 * begins with page m is noticed before page 2m + 3n (Brent's way).
 */
export class PageChain {
  #pages = 0;
  #marked: string | undefined;

  /**
   * Looks at where a page leads.
   *
   * @param address where it was, as the page before gave it
   * @param next what it names as the next one
   * @throws ServiceError to wait on, when that is itself: asked again, it may lead on; to give up on, when the chain goes
   *   round in a circle, or is too long
   */
  follow(address: string, next: string | null): void {
    if (next === null) return;
    if (next === address)
      throw new ServiceError('wait', 'The service sent a page that names itself as the next one.', {
        kind: 'bad_answer',
      });
    this.#pages++;
    if ((this.#pages & (this.#pages - 1)) === 0) this.#marked = address;
    if (next === this.#marked)
      throw new ServiceError(
        'give_up',
        "The service's pages go round in a circle: one leads back to a page that was read before.",
      );
    checkLength(this.#pages);
  }
}

/**
 * For a chain that is followed by several, one after the other: each knows how many pages there were.
 *
 * @throws ServiceError to give up on, when so many pages lead on to another one
 */
export function checkLength(pages: number): void {
  if (pages >= MOST_PAGES)
    throw new ServiceError('give_up', `The service's list does not end after ${MOST_PAGES} pages.`);
}
