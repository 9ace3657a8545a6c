import { HEADER } from '../contract/headers.ts';
import { cutText } from './cut-text.ts';
import { ServiceError } from './errors.ts';
import type { HttpAnswer } from './http.ts';
import { parseHttpDate } from './http-date.ts';
import { readRateHeaders } from './rate-headers.ts';
import { LONGEST_GUARD_WAIT_MS, LONGEST_RETRY_AFTER_MS, retryAfterMs, statedWaitMs } from './retry-timing.ts';

/** The wait after a 429 that says nothing about it, in milliseconds. */
const UNSAID_WAIT_MS = 5_000;

/** Longest part of the service's own words that goes into a message. */
const LONGEST_QUOTE = 200;

/**
 * Says what an answer refuses, and what is to be done about it (Errors).
 *
 * @param now the service's time in milliseconds since 1970
 * @returns undefined for an answer that refuses nothing
 */
export function refusalOf(answer: HttpAnswer, now: number): ServiceError | undefined {
  const { status, headers } = answer;
  // A part of a list (206) is not all that is there.
  if (status >= 200 && status < 300 && status !== 206) return undefined;
  const tier = headers[HEADER.tier];
  const longestMs = tier === undefined ? LONGEST_RETRY_AFTER_MS : LONGEST_GUARD_WAIT_MS;
  const waitMs = retryAfterMs(headers[HEADER.retryAfter], parseHttpDate(headers.date) || now, longestMs);
  const facts = { status, ...(waitMs === undefined ? {} : { retryAfterMs: waitMs }) };
  if (status === 401) {
    return new ServiceError('refresh', 'The service rejected the access token (401).', { status });
  }
  if (status === 429) {
    return new ServiceError('wait', 'The service asked us to slow down (429).', {
      status,
      retryAfterMs:
        waitMs ??
        statedWaitMs(messageOf(answer.body), longestMs) ??
        readRateHeaders(headers, now)?.endsInMs ??
        UNSAID_WAIT_MS,
      ...(tier === undefined ? {} : { tier }),
    });
  }
  if (status >= 500 || status === 408 || status === 425) {
    return new ServiceError('wait', `The service has trouble (${status}${quote(answer.body)}).`, facts);
  }
  if (status === 206) {
    return new ServiceError('wait', 'The service sent only a part of its answer (206).', facts);
  }
  if (status >= 300 && status < 400) {
    return new ServiceError(
      'give_up',
      `The service answered with a redirect (${status}), which is not followed.`,
      facts,
    );
  }
  return new ServiceError(
    'give_up',
    `The service refused the request (${status}${quote(answer.body)}).`,
    facts,
  );
}

/** A longer body holds no `_error` to quote, in characters. */
const LONGEST_ERROR_BODY = 64 * 1024;

/** The `_error` message of an answer, on one line and not too long, or nothing. */
function quote(body: string): string {
  const message = messageOf(body);
  return message === '' ? '' : `: ${cutText(message.replace(/\s+/g, ' '), LONGEST_QUOTE)}`;
}

/** The message of an error answer (Errors), or nothing. */
export function messageOf(body: string): string {
  if (body.length > LONGEST_ERROR_BODY) return '';
  try {
    const message = (JSON.parse(body) as { _error?: { message?: unknown } } | null)?._error?.message;
    return typeof message === 'string' ? message : '';
  } catch {
    return '';
  }
}
