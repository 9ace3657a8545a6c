import { HEADER } from '../contract/headers.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import type { Headers } from './http.ts';

/** Date.parse takes "try in 5" for a day in May, so a date needs a time of day. */
const HAS_TIME = /\d\d:\d\d/;
const HAS_ZONE = /(?:Z|UTC?|GMT|[ECMP][SD]T|[+-]\d\d:?\d\d)(?: \(.*\))?$/i;
const LONGEST_DATE = 100;

/**
 * Reads a date of a header: RFC 9110 (section 5.6.7), ISO 8601, and the other forms of Date.parse. Without a zone it is
 * GMT.
 *
 * @returns milliseconds since 1970; NaN if the text is no date
 */
export function parseHttpDate(text: string | null | undefined): number {
  const date = text?.trim() ?? '';
  if (date.length > LONGEST_DATE || !HAS_TIME.test(date)) return Number.NaN;
  return Date.parse(HAS_ZONE.test(date) ? date : `${date}Z`);
}

/** HTTP cuts a date to whole seconds. */
const RESOLUTION_MS = 1_000;

/** The service's time: our own clock, corrected by the `Date` of answers. */
export class ServiceClock {
  readonly #localNow: () => number;
  #offsetMs = 0;

  /** @param localNow our own clock, in milliseconds since 1970 */
  constructor(localNow: () => number = Date.now) {
    this.#localNow = localNow;
  }

  /** The service's time in milliseconds since 1970. */
  now(): number {
    return this.#localNow() + this.#offsetMs;
  }

  /** Learns from the `Date` of an answer that has just arrived. */
  observe(date: string | undefined): void {
    const at = parseHttpDate(date);
    if (Number.isNaN(at)) return;
    // The true time lies in [at, at + 1 s): our own reading stays if it fits.
    const difference = this.now() - at;
    if (difference < 0 || difference > RESOLUTION_MS)
      this.#offsetMs = at + RESOLUTION_MS / 2 - this.#localNow();
  }
}

/** The limit's headers of an answer (Limits, "Response headers on every API response"). */
export interface RateHeaders {
  limit: number;
  remaining: number;
  /** The end of the window by the service's clock, in milliseconds since 1970. It identifies the window. */
  resetMs: number;
  /** Milliseconds from the answer to the end of the window; never too few. */
  endsInMs: number;
  burstRemaining: number | undefined;
}

/** Below this, in seconds, a reset is the time that is left, and no moment: 1970 had ended by then. */
const LEAST_EPOCH = 1e7;

/**
 * Reads the limit's headers. `reset` is a moment in seconds since 1970; some services send the seconds that are left.
 *
 * @param serviceNow our reading of the service's time, for answers without `Date` and for seconds that are left
 * @returns undefined if they are missing or make no sense
 */
export function readRateHeaders(headers: Headers, serviceNow: number): RateHeaders | undefined {
  const limit = readLimit(headers);
  const remaining = readNumber(headers[HEADER.remaining]);
  const reset = readNumber(headers[HEADER.reset]) ?? -1;
  const burst = readNumber(headers[HEADER.burstRemaining]) ?? -1;
  if (limit === undefined || remaining === undefined || reset < 0) return undefined;
  return {
    limit,
    // Services that count refused requests, or lower the limit, go below zero.
    remaining: Math.max(0, Math.floor(remaining)),
    ...(reset < LEAST_EPOCH
      ? // The whole seconds of `Date` would make two windows of one.
        { resetMs: Math.round(serviceNow + reset * 1_000), endsInMs: windowEndsInMs(reset, 0) }
      : {
          resetMs: Math.round(reset * 1_000),
          endsInMs: windowEndsInMs(reset, parseHttpDate(headers.date) || serviceNow),
        }),
    burstRemaining: burst < 0 ? undefined : burst,
  };
}

/** The limit alone; undefined if it is missing or makes no sense. */
export function readLimit(headers: Headers): number | undefined {
  const limit = Math.floor(readNumber(headers[HEADER.limit]) ?? 0);
  return limit > 0 ? limit : undefined;
}

/**
 * How long the window still lasts. `reset` and `Date` both come from the service's clock, so ours may be wrong. Both may
 * be cut to whole seconds: a cut `Date` makes the wait longer, and a cut reset gets a second more. If the window ended
 * before its answer, the service's clocks disagree, and the wait is a whole window.
 *
 * @param reset in seconds since 1970, or of the time that is left
 * @param dateMs the answer's `Date`, in milliseconds since 1970, or 0
 */
function windowEndsInMs(reset: number, dateMs: number): number {
  const margin = Number.isInteger(reset) ? 1_000 : 0;
  const wait = Math.ceil(reset * 1_000 - dateMs) + margin;
  return wait < 0 ? WINDOW_MS : Math.min(wait, WINDOW_MS + 1_000);
}

/** The first number of a header that may go on: `50, 50;w=60` (draft-ietf-httpapi-ratelimit-headers). */
function readNumber(text: string | undefined): number | undefined {
  const [, digits] = /^\s*(-?\d+(?:\.\d+)?)\s*(?:[,;]|$)/.exec(text ?? '') ?? [];
  const number = Number(digits);
  return Math.abs(number) <= Number.MAX_SAFE_INTEGER ? number : undefined;
}

/** The longest wait that the app accepts, in milliseconds. Then it asks the service again. */
const LONGEST_RETRY_AFTER_MS = 15 * 60_000;
export const LONGEST_GUARD_WAIT_MS = 24 * 60 * 60_000;

/** The shortest wait after a refusal, in milliseconds: never a tight loop. */
const SHORTEST_RETRY_AFTER_MS = 50;

/** A comma between values, not the one behind a weekday or before a year. */
const BETWEEN_VALUES = /(?<!\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}),(?! ?\d{4} \d\d:)/i;

/**
 * Reads `retry-after` (Errors): seconds, an HTTP date, and the other forms that services send: epoch seconds or
 * milliseconds, a unit, quotes. Of several values the longest wait counts.
 *
 * @param now the service's time in milliseconds since 1970, for an answer without `Date`
 * @param longestMs the longest wait to accept
 * @returns milliseconds; undefined if the header is missing or makes no sense
 */
export function retryAfterMs(headers: Headers, now: number, longestMs?: number): number | undefined {
  const sentAt = parseHttpDate(headers.date) || now;
  const values = headers[HEADER.retryAfter]?.split(BETWEEN_VALUES) ?? [];
  const waits = values.map((value) => readWait(value.replace(/^[\s"]+|[\s"]+$/g, ''), sentAt));
  return longestOf(waits, longestMs);
}

/** A number of milliseconds in a sentence. */
const MILLISECONDS = /(?<![\d.,])\d+(?:\.\d+)?(?= ?(?:ms|milliseconds?)\b)/gi;

/** Reads the wait that the message of a 429 states (Errors). See {@link retryAfterMs}. */
export function statedWaitMs(message: string, longestMs?: number): number | undefined {
  return longestOf((message.match(MILLISECONDS) ?? []).map(Number), longestMs);
}

function longestOf(waits: readonly number[], longestMs = LONGEST_RETRY_AFTER_MS): number | undefined {
  const known = waits.filter((wait) => !Number.isNaN(wait));
  if (known.length === 0) return undefined;
  return Math.min(Math.ceil(Math.max(...known, SHORTEST_RETRY_AFTER_MS)), longestMs);
}

const SECONDS_UNIT = /(?<=\d) ?s(?:ec(?:ond)?s?)?$/i;

/** A number is a moment, in seconds or milliseconds since 1970, if that is so near. */
const NEAR_MS = LONGEST_GUARD_WAIT_MS;

/** In milliseconds; NaN if it makes no sense. */
function readWait(text: string, now: number): number {
  const number = text === '' ? Number.NaN : Number(text.replace(SECONDS_UNIT, ''));
  if (Number.isNaN(number)) return parseHttpDate(text) - now;
  const moment = [number * 1_000, number].find((ms) => Math.abs(ms - now) <= NEAR_MS);
  return moment === undefined ? number * 1_000 : moment - now;
}
