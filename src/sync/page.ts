import type { ListPage } from '../client/list-page.ts';
import type { Run } from '../store/runs.ts';
import { callOwnLogic, documentsAt } from './own-logic-call.ts';
import type { SliceContext, SliceWork, SyncParts } from './slice-parts.ts';

/**
 * What is done with a page that was read: the integrator's logic, then records and cursor in one transaction.
 *
 * @returns the run as it is now; undefined when it is somebody else's, or the instance is not active any more: nothing
 *   was written then
 * @throws ServiceError
 */
export async function writePage(
  parts: SyncParts,
  { instance, resource, claim }: SliceWork,
  run: Run,
  page: ListPage,
  context: SliceContext,
): Promise<Run | undefined> {
  const changes = await parts.pages.compare(run, page);
  const { created, changed, skipped, records } = changes;
  if (skipped > 0) context.logger.warn({ skipped }, 'records without a usable id were left out');
  await callOwnLogic(
    parts,
    { instance, resource: resource.name },
    { created: documentsAt(page.results, created), changed: documentsAt(page.results, changed) },
    context,
  );
  const written = await parts.pages.commit(claim, page, changes, (parts.now ?? Date.now)());
  if (written !== undefined) parts.onPage?.({ resource: resource.name, records });
  return written;
}
