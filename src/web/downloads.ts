import { WebError } from './web-error.ts';

/** Downloads of one session at a time: each holds a portion of the copy in memory for as long as its client is slow. */
const MOST_PER_SESSION = 2;

/** When to try again at the earliest, in seconds: nobody knows when a download ends. */
const RETRY_AFTER_SECONDS = 30;

/** The downloads that are under way in this process, by session. */
export class Downloads {
  readonly #perSession = new Map<string, number>();

  /**
   * Takes a place.
   *
   * @returns a function that gives it back, to be called once
   * @throws WebError 429 when this session has none left
   */
  begin(sessionId: string): () => void {
    const taken = this.#perSession.get(sessionId) ?? 0;
    if (taken >= MOST_PER_SESSION) {
      throw new WebError(
        429,
        'Too many downloads',
        `This browser has ${MOST_PER_SESSION} downloads under way. Wait until one of them has ended, or break one off; then begin this one again.`,
        { retryAfterSeconds: RETRY_AFTER_SECONDS },
      );
    }
    this.#perSession.set(sessionId, taken + 1);
    return () => {
      const left = (this.#perSession.get(sessionId) ?? 1) - 1;
      if (left > 0) this.#perSession.set(sessionId, left);
      else this.#perSession.delete(sessionId);
    };
  }
}
