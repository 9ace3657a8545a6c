import { type Dispatcher, request } from 'undici';
import { STRAIGHT, serviceAgent } from './agent.ts';
import type { ServiceClock } from './service-clock.ts';

/** Tokens are judged right after this was asked: only an answer of just now spares the question, in milliseconds. */
const FRESH_MS = 1_000;

const TIMEOUT_MS = 3_000;

/** How long a connection is kept for a further question, in milliseconds. */
const KEPT_MS = 1_000;

/** How often {@link ServiceTime.keep} asks, in milliseconds. */
const EVERY_MS = 30_000;

/**
 * So often the time is asked for where an answer was hard to believe: of four answers that tell it, of which one is
 * wrong, two in a row agree, also where our own clock is wrong, too.
 */
const MOST_QUESTIONS = 3;

/** How long {@link settleTime} takes at the most, in milliseconds. */
export const LONGEST_SETTLING_MS = MOST_QUESTIONS * TIMEOUT_MS;

/**
 * Keeps the {@link ServiceClock} of the token route right while no token is asked for: asks for nothing but the `Date` of
 * an answer, any answer, without a token. Token lifetimes count on the service's clock, and ours may be wrong.
 */
export class ServiceTime {
  readonly #clock: ServiceClock;
  readonly #authUrl: string;
  readonly #freshMs: number;
  readonly #dispatcher: Dispatcher;

  /**
   * @param authUrl `{auth_url}`: its answers count against nobody's limit
   * @param freshMs an answer not older than this tells the time well enough
   */
  constructor(clock: ServiceClock, authUrl: string, freshMs = FRESH_MS, wayOut = STRAIGHT) {
    this.#clock = clock;
    this.#authUrl = authUrl;
    this.#freshMs = freshMs;
    this.#dispatcher = serviceAgent(wayOut, KEPT_MS);
  }

  /** Asks from time to time, for a process that may have nothing else to ask for a while. @param signal ends it */
  keep(signal: AbortSignal): void {
    const timer = setInterval(() => this.refresh(), EVERY_MS).unref();
    signal.addEventListener('abort', () => clearInterval(timer));
  }

  /**
   * Asks, unless an answer has told the time just now; a few times more if the answer is hard to believe. Without an
   * answer the clock stays as it is.
   *
   * @param signal ends the asking
   */
  async refresh(signal?: AbortSignal): Promise<void> {
    if (this.#clock.age() < this.#freshMs) return;
    try {
      const isDoubted = this.#clock.observe(await askDate(this.#authUrl, this.#dispatcher, signal));
      if (isDoubted) await settleTime(this.#clock, this.#authUrl, this.#dispatcher, signal);
    } catch {
      // The service cannot be reached: whoever has to do with it next will say so.
    }
  }
}

/**
 * To be done after an answer of the token route's host that was hard to believe: asks for the time until two answers in
 * a row agree, or one agrees with what the clock has. Without answers the clock stays as it is.
 *
 * @param clock that has observed the answer
 * @param authUrl `{auth_url}`
 * @param dispatcher makes the connections
 * @param signal ends the asking
 */
export async function settleTime(
  clock: ServiceClock,
  authUrl: string,
  dispatcher: Dispatcher,
  signal?: AbortSignal,
): Promise<void> {
  try {
    for (let question = 0; question < MOST_QUESTIONS; question++) {
      if (!clock.observe(await askDate(authUrl, dispatcher, signal))) return;
    }
  } catch {
    // The next answer is compared with this one.
  }
}

/**
 * The `Date` of an answer of the host, empty if it has none, or if a cache on the way has kept the answer: that tells
 * when the cache asked, and as every answer from it says the same, a second one would prove nothing.
 *
 * @throws Error when there is no answer
 */
async function askDate(authUrl: string, dispatcher: Dispatcher, signal?: AbortSignal): Promise<string> {
  const timeout = AbortSignal.timeout(TIMEOUT_MS);
  const answer = await request(authUrl, {
    dispatcher,
    method: 'HEAD',
    headers: { 'cache-control': 'no-cache' },
    signal: signal === undefined ? timeout : AbortSignal.any([timeout, signal]),
  });
  await answer.body.dump();
  const { age, date } = answer.headers;
  const wasKept = age !== undefined && Number(age) !== 0;
  return wasKept ? '' : String(date ?? '');
}
