import { ServiceError } from '../client/errors.ts';
import type { Instance } from '../store/instances.ts';
import type { OwnLogic, RecordBatch, ServiceDocument } from './own-logic.ts';
import type { SliceContext } from './slice-parts.ts';

/** The changes of a batch, without what names its place. */
export type BatchChanges = Partial<Pick<RecordBatch, 'created' | 'changed' | 'deleted'>>;

/**
 * Hands a batch to the integrator's function, if it changes anything.
 *
 * @throws ServiceError to wait on, when the function throws
 */
export async function callOwnLogic(
  ownLogic: OwnLogic,
  place: { instance: Instance; resource: string },
  changes: BatchChanges,
  context: SliceContext,
): Promise<void> {
  const { created = [], changed = [], deleted = [] } = changes;
  if (created.length + changed.length + deleted.length === 0) return;
  const { instance, resource } = place;
  try {
    await ownLogic(
      { instanceId: instance.id, companyId: instance.company_id, resource, created, changed, deleted },
      context,
    );
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    throw new ServiceError('wait', `The app's own logic failed on a batch of ${resource}: ${reason}`, {
      cause: error,
    });
  }
}

/** The documents at these places of a page. */
export function documentsAt(results: readonly unknown[], places: readonly number[]): ServiceDocument[] {
  return places.map((place) => results[place] as ServiceDocument);
}
