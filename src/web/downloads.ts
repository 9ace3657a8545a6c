import { Counts } from './counts.ts';
import { WebError } from './web-error.ts';

/** Downloads of one browser at a time: each holds a portion of the copy in memory for as long as its client is slow. */
const MOST_PER_BROWSER = 2;

/** Of one company, in any number of browsers, and of this process. */
const MOST = { ofInstance: 8, inAll: 40 } as const;

/** When to try again at the earliest, in seconds: nobody knows when a download ends. */
const RETRY_AFTER_SECONDS = 30;

const TRY_LATER = 'Wait until one of them has ended, or break one off; then begin this one again.';

/** The downloads that are under way in this process. */
export class Downloads {
  readonly #perBrowser = new Counts();
  readonly #perInstance = new Counts();
  #inAll = 0;

  /**
   * Takes a slot.
   *
   * @returns a function that releases it, to be called once
   * @throws WebError 429 when this browser or this company has none left, 503 when the process has none
   */
  begin(browserId: string, instanceId: string): () => void {
    if (this.#perBrowser.of(browserId) >= MOST_PER_BROWSER) {
      throw tooMany(429, `This browser has ${MOST_PER_BROWSER} downloads under way. ${TRY_LATER}`);
    }
    if (this.#perInstance.of(instanceId) >= MOST.ofInstance) {
      throw tooMany(
        429,
        `This company has ${MOST.ofInstance} downloads under way, in other browsers. ${TRY_LATER}`,
      );
    }
    if (this.#inAll >= MOST.inAll) {
      throw tooMany(
        503,
        'The app has as many downloads under way as it takes. Begin this one again in a while.',
      );
    }
    this.#perBrowser.add(browserId);
    this.#perInstance.add(instanceId);
    this.#inAll++;
    return () => {
      this.#perBrowser.remove(browserId);
      this.#perInstance.remove(instanceId);
      this.#inAll--;
    };
  }
}

function tooMany(status: 429 | 503, message: string): WebError {
  return new WebError(status, 'Too many downloads', message, { retryAfterSeconds: RETRY_AFTER_SECONDS });
}
