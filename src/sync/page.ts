import type { ListPage } from '../client/list-page.ts';
import { idsOf } from '../store/pages.ts';
import type { Run } from '../store/runs.ts';
import { documentsAt } from './own-logic-call.ts';
import { tellAndWrite } from './own-logic-note.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/**
 * What is done with a page that was read: the integrator's logic, then records and cursor in one transaction, and with
 * them what is set aside: records that cannot be kept, and the batch if the logic does not take it.
 *
 * @returns the run as it is now; undefined when it is somebody else's, or the instance is not active any more: nothing
 *   was written then
 * @throws ServiceError
 */
export async function writePage(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  page: ListPage,
  context: SliceContext,
): Promise<Run | undefined> {
  const changes = await parts.pages.compare(run, page);
  const { created, changed, unusable, records } = changes;
  if (unusable.length > 0) {
    context.logger.warn({ records: unusable.length }, 'records cannot be kept: they are set aside');
  }
  const batch = {
    changes: {
      created: documentsAt(page.results, created),
      changed: documentsAt(page.results, changed),
    },
    ids: idsOf(changes),
  };
  const written = await tellAndWrite(parts, work, run, batch, context, (parking) =>
    parts.pages.commit(work.claim, page, changes, (parts.now ?? Date.now)(), parking),
  );
  if (written !== undefined) parts.onPage?.({ resource: work.resource.name, records });
  return written;
}
