import { ServiceError, type ServiceErrorFacts } from '../client/errors.ts';
import { LONGEST_RETRY_AFTER_MS } from '../client/retry-timing.ts';
import type { Instance } from '../store/instances.ts';
import type { RecordBatch, ServiceDocument } from './own-logic.ts';
import { OwnLogicTime, OwnLogicTimeout } from './own-logic-time.ts';
import type { SliceContext, SyncParts } from './slice-parts.ts';

/** The changes of a batch, without what names its place. */
export type BatchChanges = Partial<Pick<RecordBatch, 'created' | 'changed' | 'deleted'>>;

/** What a call of the own logic works with. */
export type OwnLogicParts = Pick<SyncParts, 'ownLogic' | 'ownLogicTimeoutMs' | 'serviceFor'>;

/**
 * The longest that a call of the own logic waits, in milliseconds: for many windows of the limit. A batch that makes
 * hundreds of calls at once would otherwise fail for the last of them, and begin again with the first.
 */
const OWN_LOGIC_MAX_WAIT_MS = LONGEST_RETRY_AFTER_MS;

/** More of a reason is not kept, in UTF-16 units. */
const LONGEST_REASON = 1_000;

/** The own logic has failed on a batch, by itself: this uses up a try. */
export class OwnLogicError extends ServiceError {
  /** It took too long: another try will take as long. */
  readonly isTimeout: boolean;
  /** How often the own logic has failed on this batch. */
  tries = 1;

  constructor(message: string, facts: ServiceErrorFacts) {
    super('wait', message, facts);
    this.name = 'OwnLogicError';
    this.isTimeout = facts.cause instanceof OwnLogicTimeout;
  }
}

/**
 * Hands a batch to the integrator's function, if it changes anything. No permit is held meanwhile, so that the function
 * gets as many as there are.
 *
 * @throws OwnLogicError when the function throws or takes too long; another ServiceError when it let one through that
 *   the run has to wait for, or that asks for a new authorization
 */
export async function callOwnLogic(
  { ownLogic, ownLogicTimeoutMs, serviceFor }: OwnLogicParts,
  place: { instance: Instance; resource: string },
  changes: BatchChanges,
  { logger, signal: shutdown }: Pick<SliceContext, 'logger' | 'signal'>,
): Promise<void> {
  const { created = [], changed = [], deleted = [] } = changes;
  if (created.length + changed.length + deleted.length === 0) return;
  const { instance, resource } = place;
  const { id: instanceId, company_id: companyId } = instance;
  const company = companyId ?? instanceId;
  const time = new OwnLogicTime(ownLogicTimeoutMs, shutdown);
  const context = {
    logger,
    get signal() {
      return time.signal;
    },
    get service() {
      const { signal, around } = time;
      return serviceFor({ instanceId, company, signal, around, maxWaitMs: OWN_LOGIC_MAX_WAIT_MS });
    },
  };
  try {
    await time.limit(async () =>
      ownLogic({ instanceId, companyId, resource, created, changed, deleted }, context),
    );
  } catch (error) {
    throw ownLogicFailure(resource, error);
  }
}

/**
 * What a failure of the own logic means for the run. A call of the service that has to wait, waits as a page does. One
 * that was refused for good (404, 422) is for the own logic to deal with: the batch is tried again with it.
 */
function ownLogicFailure(resource: string, error: unknown): ServiceError {
  const message = `The app's own logic failed on a batch of ${resource}: ${reasonOf(error)}`;
  if (!(error instanceof ServiceError)) return new OwnLogicError(message, { cause: error });
  const { remedy, status, retryAfterMs, tier, mayHaveTakenEffect } = error;
  const facts = { cause: error, mayHaveTakenEffect, status, tier };
  if (remedy === 'reauthorize') return new ServiceError(remedy, message, { ...facts, retryAfterMs });
  if (remedy === 'wait' && retryAfterMs !== undefined)
    return new ServiceError(remedy, message, { ...facts, retryAfterMs });
  return new OwnLogicError(message, facts);
}

/** Anything can be thrown, also what cannot be made a text. */
function reasonOf(error: unknown): string {
  try {
    return String(error instanceof Error ? error.message : error).slice(0, LONGEST_REASON);
  } catch {
    return 'it threw something that says nothing.';
  }
}

/** The documents at these places of a page. */
export function documentsAt(results: readonly unknown[], places: readonly number[]): ServiceDocument[] {
  return places.map((place) => results[place] as ServiceDocument);
}
