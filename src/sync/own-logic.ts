import type { Logger } from 'pino';
import type { ServiceClient } from '../client/calls/call-types.ts';

/** A document as the service sent it, parsed; the service promises an `id`, and little else. */
export type ServiceDocument = Readonly<Record<string, unknown>>;

/** What one page (or one portion of deletions) changed in the copy of one company. */
export interface RecordBatch {
  instanceId: string;
  companyId: string | null;
  /** The resource's name in `resources.ts`. */
  resource: string;
  /**
   * Seen for the first time, or again after a deletion; or told as one of these before, and not stored then; or not taken
   * then, whether it has changed since or not.
   */
  created: readonly ServiceDocument[];
  /** Different from the copy; or told as that before, and not stored then. */
  changed: readonly ServiceDocument[];
  /**
   * Not seen by a run that went from the first page to the last: as they last were; by no more than their `id` where they
   * were told, and gone before they were stored.
   */
  deleted: readonly ServiceDocument[];
}

/** What the function below may use. */
export interface OwnLogicContext {
  logger: Logger;
  /**
   * Aborted when the process shuts down, or the function has taken too long: hand it on to what can hang. A shutdown waits
   * for two seconds more.
   */
  signal: AbortSignal;
  /**
   * The API of the service, with the authorization of the batch's company: `service.listTags()`,
   * `service.createChildTag({ tag_id }, { name })`. It keeps the limits together with the sync, and waits for them; let
   * its errors through, and the batch is tried again when there is a point in it. Its time does not count as yours.
   */
  service: ServiceClient;
}

/** The integrator's own logic, called with every batch that changes something. */
export type OwnLogic = (batch: RecordBatch, context: OwnLogicContext) => Promise<void>;

/**
 * YOUR LOGIC GOES HERE: `export const onRecords: OwnLogic = async (batch, { logger }) => { … };` in place of the line
 * below. It is called inside the run, before the batch is stored: if it throws, or takes too long, the batch is tried
 * again after pauses; then it is parked and shown on the dashboard, and the sync goes on without it. Each later run tries
 * it once more, and so does a button, with its records as they are by then. Whatever comes between your work and the
 * store (a crash, an error, a pause), its records are told again, as they are by then: so make it idempotent, by their
 * `id`.
 */
export const onRecords: OwnLogic | undefined = undefined;
