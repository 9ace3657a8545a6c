import { HEADER } from '../contract/headers.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import type { Headers } from './http.ts';

/** Without a time of day a text is no moment: Date.parse would take "try in 5" for a day in May. */
const HAS_TIME = /\d\d:\d\d/;
const HAS_ZONE = /(?:Z|UTC?|GMT|[ECMP][SD]T|[+-]\d\d:?\d\d)(?: \(.*\))?$/i;
const LONGEST_DATE = 100;

/**
 * Reads a date in a header: the three forms of RFC 9110 (section 5.6.7), ISO 8601, and what else Date.parse knows. A date
 * without a zone is GMT, whatever zone this machine is in.
 *
 * @returns milliseconds since 1970; NaN for a text that is no date
 */
export function parseHttpDate(text: string | null | undefined): number {
  const date = text?.trim() ?? '';
  if (date.length > LONGEST_DATE || !HAS_TIME.test(date)) return Number.NaN;
  return Date.parse(HAS_ZONE.test(date) ? date : `${date}Z`);
}

/** HTTP dates have whole seconds: a difference within this says nothing, in milliseconds. */
const RESOLUTION_MS = 1_000;

/** The service's time: our own, corrected by the `Date` of its answers. */
export class ServiceClock {
  readonly #localNow: () => number;
  #offsetMs = 0;

  /** @param localNow our own clock, in milliseconds since 1970 */
  constructor(localNow: () => number = Date.now) {
    this.#localNow = localNow;
  }

  /** The service's time now, in milliseconds since 1970. */
  now(): number {
    return this.#localNow() + this.#offsetMs;
  }

  /** Learns from the `Date` header of an answer that has just arrived. */
  observe(date: string | undefined): void {
    const at = parseHttpDate(date);
    if (Number.isNaN(at)) return;
    // The header was cut to whole seconds, so the truth lies in [at, at + 1 s): keep what we have if it fits.
    const difference = this.now() - at;
    if (difference < 0 || difference > RESOLUTION_MS)
      this.#offsetMs = at + RESOLUTION_MS / 2 - this.#localNow();
  }
}

/** What an answer says about the limit (Limits, "Response headers on every API response"). */
export interface RateHeaders {
  limit: number;
  remaining: number;
  /** The service's moment of the window's end, in milliseconds since 1970: the window's name among its answers. */
  resetMs: number;
  /** How long after its arrival the window ends, in milliseconds; never too short. */
  endsInMs: number;
  burstRemaining: number | undefined;
}

/**
 * Reads the limit's headers.
 *
 * @param serviceNow our reading of the service's time in milliseconds, for answers without a `Date`
 * @returns undefined when the answer does not carry them, or nonsense
 */
export function readRateHeaders(headers: Headers, serviceNow: number): RateHeaders | undefined {
  const limit = readToldLimit(headers);
  const remaining = readNumber(headers[HEADER.remaining]);
  const reset = readNumber(headers[HEADER.reset]) ?? -1;
  const burst = readNumber(headers[HEADER.burstRemaining]) ?? -1;
  if (limit === undefined || remaining === undefined || reset < 0) return undefined;
  return {
    limit,
    // Below zero where refused requests count, or the limit has fallen.
    remaining: Math.max(0, Math.floor(remaining)),
    resetMs: Math.round(reset * 1_000),
    endsInMs: windowEndsInMs(reset, parseHttpDate(headers.date) || serviceNow),
    burstRemaining: burst < 0 ? undefined : burst,
  };
}

/** The limit alone, whatever the other headers are; undefined when it is absent or nonsense. */
export function readToldLimit(headers: Headers): number | undefined {
  const limit = Math.floor(readNumber(headers[HEADER.limit]) ?? 0);
  return limit > 0 ? limit : undefined;
}

/**
 * How long the window still lasts when an answer arrives. Both moments are the service's own, so no clock needs to agree
 * with it. `Date` was cut to whole seconds, which makes the wait up to a second too long, never too short. A reset without
 * a fraction may have been cut likewise: a second more keeps that from being early. A window that had ended before its
 * answer was sent shows that the service's clocks disagree: then the window lasts a minute at most.
 *
 * @param reset in seconds since 1970
 * @param dateMs the answer's `Date`, in milliseconds since 1970
 */
function windowEndsInMs(reset: number, dateMs: number): number {
  const margin = Number.isInteger(reset) ? 1_000 : 0;
  const wait = Math.ceil(reset * 1_000 - dateMs) + margin;
  return wait < 0 ? WINDOW_MS : Math.min(wait, WINDOW_MS + 1_000);
}

/** The first number of a header, which may go on: `50, 50;w=60` (draft-ietf-httpapi-ratelimit-headers). */
function readNumber(text: string | undefined): number | undefined {
  const [, digits] = /^\s*(-?\d+(?:\.\d+)?)\s*(?:[,;]|$)/.exec(text ?? '') ?? [];
  return digits === undefined || Math.abs(Number(digits)) > Number.MAX_SAFE_INTEGER
    ? undefined
    : Number(digits);
}

/** The longest waits that we believe, in milliseconds; after a longer one the service is asked again then. */
const LONGEST_RETRY_AFTER_MS = 15 * 60_000;
export const LONGEST_GUARD_WAIT_MS = 24 * 60 * 60_000;

/** The shortest wait after a refusal, in milliseconds, whatever the service says: never a tight loop. */
const SHORTEST_RETRY_AFTER_MS = 50;

/** Between the values of a header that came several times; not within a date, behind its weekday or before its year. */
const BETWEEN_VALUES = /(?<!\b(?:mon|tue|wed|thu|fri|sat|sun)[a-z]{0,6}),(?! ?\d{4} \d\d:)/i;

/**
 * Reads `retry-after` (Errors): seconds, an HTTP date, and what services send besides: epoch seconds or milliseconds, an
 * ISO 8601 duration, a unit, quotes. Of several values the longest wait counts.
 *
 * @param now the service's time in milliseconds since 1970, for answers without a `Date`
 * @param longestMs the longest wait that is believed
 * @returns milliseconds to wait, kept within reason; undefined when the header is absent or makes no sense
 */
export function retryAfterMs(headers: Headers, now: number, longestMs?: number): number | undefined {
  const sentAt = parseHttpDate(headers.date) || now;
  const values = headers[HEADER.retryAfter]?.split(BETWEEN_VALUES) ?? [];
  return longestOf(
    values.map((value) => readWait(value.replace(/^[\s"]+|[\s"]+$/g, ''), sentAt)),
    longestMs,
  );
}

/** A number of milliseconds in a sentence. */
const MILLISECONDS = /(?<![\d.,])\d+(?:\.\d+)?(?= ?(?:ms|milliseconds?)\b)/gi;

/** Reads the wait that the message of a 429 states (Errors); parameters and result as of {@link retryAfterMs}. */
export function statedWaitMs(message: string, longestMs?: number): number | undefined {
  return longestOf((message.match(MILLISECONDS) ?? []).map(Number), longestMs);
}

function longestOf(waits: readonly number[], longestMs = LONGEST_RETRY_AFTER_MS): number | undefined {
  const known = waits.filter((wait) => !Number.isNaN(wait));
  if (known.length === 0) return undefined;
  return Math.min(Math.ceil(Math.max(...known, SHORTEST_RETRY_AFTER_MS)), longestMs);
}

const DURATION = /^P(?=[\dT])(?:(\d+)D)?(?:T(?=\d)(?:(\d+)H)?(?:(\d+)M)?(?:(\d+(?:\.\d+)?)S)?)?$/i;
const SECONDS_UNIT = /(?<=\d) ?s(?:ec(?:ond)?s?)?$/i;

/** From these on a number is a moment: the year 2001 in seconds, and in milliseconds. */
const EPOCH_SECONDS = 1e9;
const EPOCH_MS = 1e12;

/** In milliseconds; NaN for what makes no sense. */
function readWait(text: string, now: number): number {
  const duration = DURATION.exec(text)
    ?.slice(1)
    .map((part = '0') => Number(part));
  if (duration !== undefined) {
    const [days = 0, hours = 0, minutes = 0, seconds = 0] = duration;
    return (((days * 24 + hours) * 60 + minutes) * 60 + seconds) * 1_000;
  }
  const number = text === '' ? Number.NaN : Number(text.replace(SECONDS_UNIT, ''));
  if (Number.isNaN(number)) return parseHttpDate(text) - now;
  if (number >= EPOCH_MS) return number - now;
  return number * 1_000 - (number >= EPOCH_SECONDS ? now : 0);
}
