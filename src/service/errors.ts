import { HEADER } from '../contract/headers.ts';
import { REDACTED, redact } from '../runtime/redaction.ts';
import { LONGEST_GUARD_WAIT_MS, readRateHeaders, retryAfterMs, statedWaitMs } from './headers.ts';
import type { HttpAnswer } from './http.ts';

/**
 * What helps against a failure:
 * - `wait`: try again after `retryAfterMs`, or after a pause of our own
 * - `refresh`: refresh the access token once, then try again
 * - `reauthorize`: an administrator installs the app again
 * - `give_up`: another try fails, too
 */
type Remedy = 'wait' | 'refresh' | 'reauthorize' | 'give_up';

/** The kinds of failure, each with its usual remedy. */
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

type ServiceErrorKind = keyof typeof REMEDIES;

/** Facts that a failure carries beside its message. */
export interface ServiceErrorFacts extends ErrorOptions {
  /** Where it is not the usual one of the kind. */
  remedy?: Remedy | undefined;
  /** HTTP status, if there was an answer. */
  status?: number | undefined;
  /** How long the service asks us to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** The request did not reach the service. */
  unsent?: boolean;
  /** An earlier error names the reason; this one only says how long to wait. */
  isRepeat?: boolean;
}

/** A request to the service failed. The message is for administrators and holds no secret. */
export class ServiceError extends Error {
  override readonly name = 'ServiceError';
  readonly kind: ServiceErrorKind;
  readonly remedy: Remedy;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly unsent: boolean;
  readonly isRepeat: boolean;

  constructor(kind: ServiceErrorKind, message: string, facts: ServiceErrorFacts = {}) {
    super(message, facts);
    this.kind = kind;
    this.remedy = facts.remedy ?? REMEDIES[kind];
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.unsent = facts.unsent ?? false;
    this.isRepeat = facts.isRepeat ?? false;
  }
}

/** How much a message quotes of the service, and of an error of the app itself, in UTF-16 units. */
const LONGEST_QUOTE = 200;
const LONGEST_REASON = 1_000;

/** Returns a ServiceError as it is, and wraps any other error as `internal`. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  const message = `The app itself failed: ${redact(reason).slice(0, LONGEST_REASON)}`;
  return new ServiceError('internal', message, { cause: error });
}

/** The service rejects a token that was refreshed just now: the token is not the reason. */
export function rejectedAgain(cause?: ServiceError): ServiceError {
  const message = 'The service rejects access tokens that should still be good (401).';
  return new ServiceError('refused', message, { remedy: 'wait', status: 401, cause });
}

/** The app cannot read an answer. The next answer may be better. */
export function unreadable(what: string, why: string, cause?: unknown): ServiceError {
  return new ServiceError('bad_answer', `The service sent ${what} that cannot be read: ${why}.`, { cause });
}

/** The kind of a failure by its HTTP status; undefined means no answer. */
export function kindOfStatus(status: number | undefined): ServiceErrorKind {
  if (status === undefined) return 'unreachable';
  if (status < 300) return 'bad_answer';
  if (status === 429) return 'rate_limited';
  // 408 and 425 ask for the same request again.
  return status >= 500 || status === 408 || status === 425 ? 'server_error' : 'refused';
}

/** The wait after a 429 that names none, in milliseconds. */
const DEFAULT_WAIT_MS = 5_000;

/**
 * Says what an answer refuses (Errors).
 *
 * @param now the service's time in milliseconds since 1970
 * @param accessToken of the request: the message leaves it out of what it quotes
 * @returns undefined for a success
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
  const longestMs = headers[HEADER.tier] === undefined ? undefined : LONGEST_GUARD_WAIT_MS;
  const waitMs = retryAfterMs(headers, now, longestMs);
  if (kind === 'rate_limited') {
    const statedMs = waitMs ?? statedWaitMs(messageOf(body), longestMs);
    return new ServiceError(kind, 'The service asked us to slow down (429).', {
      status,
      retryAfterMs: statedMs ?? readRateHeaders(headers, now)?.endsInMs ?? DEFAULT_WAIT_MS,
    });
  }
  const quote = redact(messageOf(body).replaceAll(accessToken, REDACTED)).replace(/\s+/g, ' ');
  const message = refusalMessage(status, kind, quote.slice(0, LONGEST_QUOTE));
  return new ServiceError(kind, message, { status, retryAfterMs: waitMs });
}

function refusalMessage(status: number, kind: ServiceErrorKind, quote: string): string {
  if (status === 206) return 'The service sent only a part of its answer (206).';
  if (status < 400) return `The service answered with a redirect (${status}), which the app does not follow.`;
  const reason = quote === '' ? `(${status})` : `(${status}: ${quote})`;
  return kind === 'server_error'
    ? `The service failed ${reason}.`
    : `The service refused the request ${reason}.`;
}

/** A longer body holds no `_error` to quote, in characters. */
const LONGEST_ERROR_BODY = 64 * 1024;

/** The message of an error answer, or an empty text (Errors). */
export function messageOf(body: string): string {
  if (body.length > LONGEST_ERROR_BODY) return '';
  const { message } = fieldsOf(readObject(body)._error);
  return typeof message === 'string' ? message : '';
}

/** The fields of a JSON object; none for anything else. */
export function readObject(text: string): Readonly<Record<string, unknown>> {
  try {
    return fieldsOf(JSON.parse(text));
  } catch {
    return {};
  }
}

/** The fields of an object; none for anything else. */
export function fieldsOf(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
