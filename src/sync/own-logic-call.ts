import { ServiceError } from '../client/errors.ts';
import { LONGEST_RETRY_AFTER_MS } from '../client/retry-timing.ts';
import type { Instance } from '../store/instances.ts';
import type { RecordBatch, ServiceDocument } from './own-logic.ts';
import type { SliceContext, SyncParts } from './slice-parts.ts';

/** The changes of a batch, without what names its place. */
export type BatchChanges = Partial<Pick<RecordBatch, 'created' | 'changed' | 'deleted'>>;

/**
 * The longest that a call of the own logic waits, in milliseconds: for many windows of the limit. A batch that makes
 * hundreds of calls at once would otherwise fail for the last of them, and begin again with the first.
 */
const OWN_LOGIC_MAX_WAIT_MS = LONGEST_RETRY_AFTER_MS;

/**
 * Hands a batch to the integrator's function, if it changes anything. No permit is held meanwhile, so that the function
 * gets as many as there are.
 *
 * @throws ServiceError when the function throws: to wait on, unless the instance needs a new authorization
 */
export async function callOwnLogic(
  { ownLogic, serviceFor }: Pick<SyncParts, 'ownLogic' | 'serviceFor'>,
  place: { instance: Instance; resource: string },
  changes: BatchChanges,
  { logger, signal }: Pick<SliceContext, 'logger' | 'signal'>,
): Promise<void> {
  const { created = [], changed = [], deleted = [] } = changes;
  if (created.length + changed.length + deleted.length === 0) return;
  const { instance, resource } = place;
  const { id: instanceId, company_id: companyId } = instance;
  const company = companyId ?? instanceId;
  const context = {
    logger,
    signal,
    get service() {
      return serviceFor({ instanceId, company, signal, maxWaitMs: OWN_LOGIC_MAX_WAIT_MS });
    },
  };
  try {
    await ownLogic({ instanceId, companyId, resource, created, changed, deleted }, context);
  } catch (error) {
    throw ownLogicFailure(resource, error);
  }
}

/**
 * What a failure of the own logic means for the run. A call of the service that has to wait, waits as a page does. One
 * that was refused for good (404, 422) is for the own logic to deal with: the page is tried again with it.
 */
function ownLogicFailure(resource: string, error: unknown): ServiceError {
  const reason = error instanceof Error ? error.message : String(error);
  const message = `The app's own logic failed on a batch of ${resource}: ${reason}`;
  if (!(error instanceof ServiceError)) return new ServiceError('wait', message, { cause: error });
  const { remedy, status, retryAfterMs, tier, mayHaveTakenEffect } = error;
  return new ServiceError(remedy === 'reauthorize' ? remedy : 'wait', message, {
    cause: error,
    mayHaveTakenEffect,
    status,
    retryAfterMs: remedy === 'wait' ? retryAfterMs : undefined,
    tier,
  });
}

/** The documents at these places of a page. */
export function documentsAt(results: readonly unknown[], places: readonly number[]): ServiceDocument[] {
  return places.map((place) => results[place] as ServiceDocument);
}
