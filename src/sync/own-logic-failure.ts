import { cutText } from '../client/cut-text.ts';
import { ServiceError, type ServiceErrorFacts } from '../client/errors.ts';
import { LONGEST_RETRY_AFTER_MS } from '../client/retry-timing.ts';
import { WINDOW_MS } from '../contract/limits.ts';
import { OwnLogicTimeout } from './own-logic-time.ts';

/** More of a reason is not kept, in UTF-16 units. */
const LONGEST_REASON = 1_000;

/** So many causes behind an error are kept, for the log. */
const MOST_CAUSES = 5;

/** The company's own limit makes nobody wait for longer, in milliseconds: a window, and what clocks differ by. */
const LONGEST_LIMIT_WAIT_MS = 2 * WINDOW_MS;

/**
 * Who made a call of the own logic wait: the company's own rate limit, for which pages wait likewise; or the service, by
 * trouble or by a guard that is none of the pages'.
 */
export type OwnLogicWait = 'limit' | 'service';

/** What is known of a failure of the own logic besides. */
interface OwnLogicFacts extends ServiceErrorFacts {
  isTimeout?: boolean;
  waitsFor?: OwnLogicWait | undefined;
}

/** The own logic has failed on a batch, by itself or as a call of the service had to wait: this uses up a try. */
export class OwnLogicError extends ServiceError {
  /** It took too long: another try will take as long. */
  readonly isTimeout: boolean;
  /** Undefined when it failed by itself. */
  readonly waitsFor: OwnLogicWait | undefined;
  /** How often the own logic has failed on this batch. */
  tries = 1;
  /** When it was called with it for the first time, in milliseconds since 1970. */
  since: number | undefined;

  constructor(message: string, { isTimeout = false, waitsFor, ...facts }: OwnLogicFacts) {
    super('wait', message, facts);
    this.name = 'OwnLogicError';
    this.isTimeout = isTimeout;
    this.waitsFor = waitsFor;
  }
}

/**
 * What a failure of the own logic means for the run. One that was refused for good (404, 422) is for the own logic to
 * deal with: the batch is tried again with it. Anything can be thrown, also what throws when it is looked at: nothing of
 * it is kept but copies.
 *
 * @returns an OwnLogicError; or another one that asks for a new authorization
 */
export function ownLogicFailure(resource: string, error: unknown): ServiceError {
  const message = `The app's own logic failed on a batch of ${resource}: ${reasonOf(error)}`;
  const cause = copyOf(error, MOST_CAUSES);
  try {
    if (error instanceof OwnLogicTimeout) return new OwnLogicError(message, { cause, isTimeout: true });
    if (error instanceof ServiceError) return serviceFailure(message, error, cause);
  } catch {
    // It is one that cannot be looked at.
  }
  return new OwnLogicError(message, { cause });
}

function serviceFailure(message: string, error: ServiceError, cause: Error | undefined): ServiceError {
  const { remedy, status, retryAfterMs, tier, mayHaveTakenEffect } = error;
  const facts = {
    cause,
    mayHaveTakenEffect: mayHaveTakenEffect === true,
    status: typeof status === 'number' ? status : undefined,
    tier: typeof tier === 'string' ? tier : undefined,
  };
  if (remedy === 'reauthorize') return new ServiceError(remedy, message, facts);
  if (remedy !== 'wait') return new OwnLogicError(message, facts);
  const waitMs = withinReason(retryAfterMs);
  const isLimit = waitMs !== undefined && tier === undefined && (status ?? 429) === 429;
  const waitsFor = isLimit && waitMs <= LONGEST_LIMIT_WAIT_MS ? 'limit' : 'service';
  return new OwnLogicError(message, { ...facts, waitsFor, retryAfterMs: waitMs });
}

function withinReason(waitMs: unknown): number | undefined {
  if (typeof waitMs !== 'number' || Number.isNaN(waitMs)) return undefined;
  return Math.min(Math.max(Math.ceil(waitMs), 0), LONGEST_RETRY_AFTER_MS);
}

function reasonOf(error: unknown): string {
  try {
    return cutText(String(error instanceof Error ? error.message : error), LONGEST_REASON);
  } catch {
    return 'it threw something that says nothing.';
  }
}

/** What the log may say of an error, in one that can be looked at; undefined for what is none. */
function copyOf(error: unknown, depth: number): Error | undefined {
  try {
    if (!(error instanceof Error) || depth === 0) return undefined;
    const { name, message, stack, cause } = error;
    const behind = copyOf(
      cause ?? (error instanceof AggregateError ? error.errors[0] : undefined),
      depth - 1,
    );
    const copy = new Error(String(message), behind === undefined ? undefined : { cause: behind });
    const facts = Object.entries(error).filter(([, value]) => ['string', 'number'].includes(typeof value));
    return Object.assign(copy, Object.fromEntries(facts), { name: String(name), stack: String(stack) });
  } catch {
    return undefined;
  }
}
