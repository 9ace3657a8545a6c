import { cutText } from './cut-text.ts';

/** How much is repeated of what went wrong in the app itself, in UTF-16 units. */
const LONGEST_REASON = 1_000;

/**
 * What to do about a failure, as data:
 * - `wait`: try again later, the run is unharmed; `retryAfterMs` says when, if the service told
 * - `refresh`: the access token was rejected: renew it once, then try again
 * - `reauthorize`: only a new installation helps
 * - `give_up`: trying again does not help; somebody has to look
 */
export type Remedy = 'wait' | 'refresh' | 'reauthorize' | 'give_up';

/** What kind of failure it is, where something depends on that. */
export type ErrorKind = 'credentials' | 'key_missing' | 'backoff' | 'timeout' | 'bad_answer' | 'internal';

/** Facts about a failure that go along with its message. */
export interface ServiceErrorFacts extends ErrorOptions {
  kind?: ErrorKind;
  /** HTTP status, where there was an answer. */
  status?: number | undefined;
  /** How long the service wants us to wait, in milliseconds. */
  retryAfterMs?: number | undefined;
  /** The guard that refused (`x-service-tier`), where one did. */
  tier?: string | undefined;
  /** The request has surely not come to the service. */
  unsent?: boolean;
  /**
   * Nothing was sent, as the permit for it was too old by then, or a connection took its time: another permit is wanted,
   * with another look whether the request is wanted still, and nothing else is wrong.
   */
  permitOver?: boolean;
  /** The request may have taken effect, although there is no answer that says so. */
  mayHaveTakenEffect?: boolean;
  /** The app had no room for the answer, which says nothing about the service. */
  noRoom?: boolean;
}

/** The one family of errors about the service; messages are for administrators and hold no secrets. */
export class ServiceError extends Error {
  readonly remedy: Remedy;
  readonly kind: ErrorKind | undefined;
  readonly status: number | undefined;
  readonly retryAfterMs: number | undefined;
  readonly tier: string | undefined;
  readonly unsent: boolean;
  readonly permitOver: boolean;
  readonly mayHaveTakenEffect: boolean;
  readonly noRoom: boolean;

  constructor(remedy: Remedy, message: string, facts: ServiceErrorFacts = {}) {
    super(message, facts.cause === undefined ? undefined : { cause: facts.cause });
    this.name = 'ServiceError';
    this.remedy = remedy;
    this.kind = facts.kind;
    this.status = facts.status;
    this.retryAfterMs = facts.retryAfterMs;
    this.tier = facts.tier;
    this.unsent = facts.unsent ?? false;
    this.permitOver = facts.permitOver ?? false;
    this.mayHaveTakenEffect = facts.mayHaveTakenEffect ?? false;
    this.noRoom = facts.noRoom ?? false;
  }
}

/** A second 401 in a row, or one on a token long before its end: what is wrong is not the token. */
export function rejectedAgain(cause?: ServiceError): ServiceError {
  return new ServiceError('wait', 'The service rejects access tokens that should still be good (401).', {
    status: 401,
    ...(cause === undefined ? {} : { cause }),
  });
}

/** The error itself if it is one of the family, else one that wraps it as passing trouble. */
export function toServiceError(error: unknown): ServiceError {
  if (error instanceof ServiceError) return error;
  const reason = error instanceof Error ? error.message : String(error);
  return new ServiceError('wait', `The app itself had trouble: ${cutText(reason, LONGEST_REASON)}`, {
    kind: 'internal',
    cause: error,
  });
}
