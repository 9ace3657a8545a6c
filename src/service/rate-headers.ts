import { HEADER } from '../contract/headers.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import type { Headers } from './http.ts';
import { parseHttpDate } from './http-date.ts';

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
  const remaining = readRemaining(headers[HEADER.remaining]);
  const reset = readNumber(headers[HEADER.reset]);
  if (limit === undefined || remaining === undefined || reset === undefined) return undefined;
  const date = parseHttpDate(headers.date);
  return {
    limit,
    remaining: Math.floor(remaining),
    resetMs: Math.round(reset * 1_000),
    endsInMs: windowEndsInMs(reset, Number.isNaN(date) ? serviceNow : date),
    burstRemaining: readNumber(headers[HEADER.burstRemaining]),
  };
}

/** The limit alone, whatever the other headers are; undefined when it is absent or nonsense, as one of less than a request. */
export function readToldLimit(headers: Headers): number | undefined {
  const limit = Math.floor(readNumber(headers[HEADER.limit]) ?? 0);
  return limit > 0 ? limit : undefined;
}

/**
 * How long the window still lasts when an answer arrives. Both moments are the service's own, so no clock needs to
 * agree with it. `Date` was cut to whole seconds, which makes the wait up to a second too long, never too short;
 * the smallest of a window's answers comes close to the truth. A reset without a fraction may have been cut
 * likewise: a second more keeps that from being early. A window that had ended before its answer was sent is none:
 * then the two clocks do not agree, and all that is known is that no window is longer than a minute.
 *
 * @param reset the header, in seconds since 1970
 * @param dateMs the answer's `Date`, in milliseconds since 1970
 * @returns milliseconds, at most a window and a second ("never more than 1 minute ahead")
 */
export function windowEndsInMs(reset: number, dateMs: number): number {
  const margin = Number.isInteger(reset) ? 1_000 : 0;
  const wait = Math.ceil(reset * 1_000 - dateMs) + margin;
  return wait < 0 ? WINDOW_MS : Math.min(wait, WINDOW_MS + 1_000);
}

/** A rest below zero, as where refused requests count, or the limit has fallen, is none. */
function readRemaining(text: string | undefined): number | undefined {
  const isOwed = text !== undefined && /^\s*-/.test(text);
  return isOwed && readNumber(text.replace('-', '')) !== undefined ? 0 : readNumber(text);
}

/** A number that can be reckoned with; what comes of it stays finite. */
function readNumber(text: string | undefined): number | undefined {
  if (text === undefined || text.trim() === '') return undefined;
  const value = Number(text);
  return value >= 0 && value <= Number.MAX_SAFE_INTEGER ? value : undefined;
}
