import type { Instance } from '../store/instances.ts';
import type { RecordBatch } from './own-logic.ts';
import { ownLogicFailure } from './own-logic-failure.ts';
import { OwnLogicTime } from './own-logic-time.ts';
import type { SliceContext, SyncParts } from './slice-parts.ts';

/** The changes of a batch, without what names its place. */
export type BatchChanges = Partial<Pick<RecordBatch, 'created' | 'changed' | 'deleted'>>;

/** What a call of the own logic works with. */
export type OwnLogicParts = Pick<SyncParts, 'ownLogic' | 'ownLogicTimeoutMs' | 'serviceFor'>;

/**
 * The longest that a call of the own logic waits, in milliseconds: for many windows of the limit. A batch that makes
 * hundreds of calls at once would otherwise fail for the last of them, and begin again with the first. It is less than
 * the longest wait that we believe: who is told to wait for that long does not keep a worker's place.
 */
const OWN_LOGIC_MAX_WAIT_MS = 10 * 60_000;

/** How a call is watched. */
export interface OwnLogicWatch {
  /** The longest that a call of the service waits, in milliseconds. */
  maxWaitMs?: number | undefined;
  /** Told when it takes long, with its calls of the service. */
  onLong?: () => void;
  /** Whether its run goes on: calls of one that does not might go out under the grant of the next install. */
  isWanted?: () => Promise<boolean>;
}

/**
 * Hands a batch to the integrator's function, if there is one, and the batch changes anything. No permit is held
 * meanwhile, so that the function gets as many as there are.
 *
 * @throws OwnLogicError when the function throws, takes too long, or lets through that a call of the service has to wait;
 *   another ServiceError when it let one through that asks for a new authorization
 */
export async function callOwnLogic(
  { ownLogic, ownLogicTimeoutMs, serviceFor }: OwnLogicParts,
  place: { instance: Instance; resource: string },
  changes: BatchChanges,
  { logger, signal: shutdown }: Pick<SliceContext, 'logger' | 'signal'>,
  { maxWaitMs = OWN_LOGIC_MAX_WAIT_MS, onLong, isWanted }: OwnLogicWatch = {},
): Promise<void> {
  const { created = [], changed = [], deleted = [] } = changes;
  if (ownLogic === undefined || created.length + changed.length + deleted.length === 0) return;
  const { instance, resource } = place;
  const { id: instanceId, company_id: companyId } = instance;
  const company = companyId ?? instanceId;
  const time = new OwnLogicTime(ownLogicTimeoutMs, shutdown, onLong);
  const context = {
    logger,
    get signal() {
      return time.signal;
    },
    get service() {
      // Also calls that come when the work is done, as of what it has not waited for, end with the process.
      const { around } = time;
      const signal = AbortSignal.any([shutdown, time.signal]);
      return serviceFor({ instanceId, company, signal, around, maxWaitMs, isWanted });
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
