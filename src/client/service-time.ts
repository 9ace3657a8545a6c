import { request } from 'undici';
import type { ServiceClock } from './service-clock.ts';

/** Tokens are judged right after this was asked: only an answer of just now spares the question, in milliseconds. */
const FRESH_MS = 1_000;

const TIMEOUT_MS = 3_000;

/**
 * Keeps the {@link ServiceClock} of the token route right while no token is asked for: asks for nothing but the `Date` of
 * an answer, any answer, without a token. Token lifetimes count on the service's clock, and ours may be wrong.
 */
export class ServiceTime {
  readonly #clock: ServiceClock;
  readonly #authUrl: string;
  readonly #freshMs: number;

  /**
   * @param authUrl `{auth_url}`: its answers count against nobody's limit
   * @param freshMs an answer not older than this tells the time well enough
   */
  constructor(clock: ServiceClock, authUrl: string, freshMs = FRESH_MS) {
    this.#clock = clock;
    this.#authUrl = authUrl;
    this.#freshMs = freshMs;
  }

  /**
   * Asks, unless an answer has told the time just now; a second time if the answer is hard to believe. Without an answer
   * the clock stays as it is.
   */
  async refresh(): Promise<void> {
    if (this.#clock.age() < this.#freshMs) return;
    try {
      if (this.#clock.observe(await askDate(this.#authUrl))) {
        this.#clock.observe(await askDate(this.#authUrl));
      }
    } catch {
      // The service cannot be reached: whoever has to do with it next will say so.
    }
  }
}

/**
 * Asks for the `Date` of an answer of the token route's host.
 *
 * @param authUrl `{auth_url}`
 * @returns empty if the answer has none
 * @throws Error when there is no answer
 */
export async function askDate(authUrl: string): Promise<string> {
  const answer = await request(authUrl, { method: 'HEAD', signal: AbortSignal.timeout(TIMEOUT_MS) });
  await answer.body.dump();
  return String(answer.headers.date ?? '');
}
