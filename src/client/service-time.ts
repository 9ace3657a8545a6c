import { request } from 'undici';
import type { ServiceClock } from './service-clock.ts';

const FRESH_MS = 20_000;

const TIMEOUT_MS = 5_000;

/**
 * Keeps the {@link ServiceClock} right while nothing is being synced: asks the service for nothing but the `Date`
 * of an answer, any answer, without a token. Token lifetimes count on the service's clock, and ours may be wrong.
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

  /** Asks, unless an answer has told the time just now. Without an answer the clock stays as it is. */
  async refresh(): Promise<void> {
    if (this.#clock.age() < this.#freshMs) return;
    try {
      const answer = await request(this.#authUrl, {
        method: 'HEAD',
        signal: AbortSignal.timeout(TIMEOUT_MS),
      });
      await answer.body.dump();
      this.#clock.observe(String(answer.headers.date ?? ''));
    } catch {
      // The service cannot be reached: whoever has to do with it next will say so.
    }
  }
}
