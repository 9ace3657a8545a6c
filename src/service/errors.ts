import { HEADER } from '../contract/headers.ts';
import { REDACTED, redact } from '../runtime/redaction.ts';
import { LONGEST_GUARD_WAIT_MS, readRateHeaders, retryAfterMs, statedWaitMs } from './headers.ts';
import type { HttpAnswer } from './http.ts';

/**
 * What to do about a failure:
 * - `wait`: try again later, after `retryAfterMs` if the service told
 * - `refresh`: the access token was rejected: renew it once, then try again
 * - `reauthorize`: only a new installation helps
 * - `give_up`: trying again does not help; somebody has to look
 */
export type Remedy = 'wait' | 'refresh' | 'reauthorize' | 'give_up';

/** The kinds of failure, and the remedy of each where the error names no other. */
const REMEDIES = {
  unreachable: 'wait',
  timeout: 'wait',
  bad_answer: 'wait',
  rate_limited: 'wait',
  server_error: 'wait',
  internal: 'wait',
  refused: 'give_up',
  credentials: 'give_up',
  key_missing: 'give_up',
  reauthorize: 'reauthorize',
} as const satisfies Record<string, Remedy>;

export type ServiceErrorKind = keyof typeof REMEDIES;

/** Facts about a failure that go along with its message. */
export interface ServiceErrorFacts extends ErrorOptions {
  remedy?: Remedy | undefined;
  /** HTTP status, where there was an answer. */
  status?: number | undefined;
  /** How long the service wants us to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** The guard that refused (`x-service-tier`), where one did. */
  tier?: string | undefined;
  /** The request has surely not reached the service. */
  unsent?: boolean;
  /** The request may have taken effect, although no answer says so. */
  mayHaveTakenEffect?: boolean;
  /** An earlier error has the reason; this one only says how long to wait. */
  isRepeat?: boolean;
}

/** Every failure of talking to the service; messages are for administrators and hold no secrets. */
export class ServiceError extends Error {
  readonly kind: ServiceErrorKind;
  readonly remedy: Remedy;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly tier: string | undefined;
  readonly unsent: boolean;
  readonly mayHaveTakenEffect: boolean;
  readonly isRepeat: boolean;

  constructor(kind: ServiceErrorKind, message: string, facts: ServiceErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'ServiceError';
    this.kind = kind;
    this.remedy = facts.remedy ?? REMEDIES[kind];
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.tier = facts.tier;
    this.unsent = facts.unsent ?? false;
    this.mayHaveTakenEffect = facts.mayHaveTakenEffect ?? false;
    this.isRepeat = facts.isRepeat ?? false;
  }
}

/** How much is repeated of the service's words, and of what went wrong in the app itself, in UTF-16 units. */
const LONGEST_QUOTE = 200;
const LONGEST_REASON = 1_000;

/** The error itself if it is one of the service, else one that wraps it as passing trouble of the app. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const message = `The app itself had trouble: ${redact(reason).slice(0, LONGEST_REASON)}`;
  return new ServiceError('internal', message, { cause: error });
}

/** A second 401 in a row, or one on a token long before its end: the token is not the reason. */
export function rejectedAgain(cause?: ServiceError): ServiceError {
  const message = 'The service rejects access tokens that should still be good (401).';
  return new ServiceError('refused', message, { remedy: 'wait', status: 401, cause });
}

/** An answer that came and cannot be used; it may be better the next time. */
export function unreadable(what: string, why: string, cause?: unknown): ServiceError {
  return new ServiceError('bad_answer', `The service sent ${what} that cannot be read: ${why}.`, { cause });
}

/** The kind of a failure by its HTTP status; undefined stands for no answer. */
export function kindOfStatus(status: number | undefined): ServiceErrorKind {
  if (status === undefined) return 'unreachable';
  if (status < 300) return 'bad_answer';
  if (status === 429) return 'rate_limited';
  // 408 and 425 ask for the same request again.
  return status >= 500 || status === 408 || status === 425 ? 'server_error' : 'refused';
}

/** The wait after a 429 that says nothing about it, in milliseconds. */
const UNSAID_WAIT_MS = 5_000;

/**
 * Says what an answer refuses, and what is to be done about it (Errors).
 *
 * @param now the service's time in milliseconds since 1970
 * @param accessToken of the request: an answer may repeat it, in any shape
 * @returns undefined for an answer that refuses nothing
 */
export function refusalOf(answer: HttpAnswer, now: number, accessToken: string): ServiceError | undefined {
  const { status, headers, body } = answer;
  // A part of a list (206) is not the list.
  if (status >= 200 && status < 300 && status !== 206) return undefined;
  if (status === 401) {
    const message = 'The service rejected the access token (401).';
    return new ServiceError('refused', message, { remedy: 'refresh', status });
  }
  const kind = kindOfStatus(status);
  const tier = headers[HEADER.tier];
  const longestMs = tier === undefined ? undefined : LONGEST_GUARD_WAIT_MS;
  const waitMs = retryAfterMs(headers, now, longestMs);
  if (kind === 'rate_limited') {
    const stated = waitMs ?? statedWaitMs(messageOf(body), longestMs);
    return new ServiceError(kind, 'The service asked us to slow down (429).', {
      status,
      retryAfterMs: stated ?? readRateHeaders(headers, now)?.endsInMs ?? UNSAID_WAIT_MS,
      tier,
    });
  }
  const words = redact(messageOf(body).replaceAll(accessToken, REDACTED)).replace(/\s+/g, ' ');
  const message = refusalMessage(status, kind, words.slice(0, LONGEST_QUOTE));
  return new ServiceError(kind, message, { status, retryAfterMs: waitMs });
}

function refusalMessage(status: number, kind: ServiceErrorKind, words: string): string {
  if (status === 206) return 'The service sent only a part of its answer (206).';
  if (status < 400) return `The service answered with a redirect (${status}), which is not followed.`;
  const quoted = words === '' ? `(${status})` : `(${status}: ${words})`;
  return kind === 'server_error'
    ? `The service has trouble ${quoted}.`
    : `The service refused the request ${quoted}.`;
}

/** A longer body holds no `_error` to quote, in characters. */
const LONGEST_ERROR_BODY = 64 * 1024;

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
