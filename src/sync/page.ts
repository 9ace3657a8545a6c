import type { ReadPage } from '../client/service-api.ts';
import { assumeNew, idsOf, KnownRecordError, type PageChanges } from '../store/pages.ts';
import type { Run } from '../store/runs.ts';
import type { ServiceDocument } from './own-logic.ts';
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
  page: ReadPage,
  context: SliceContext,
): Promise<Run | undefined> {
  const write = (changes: PageChanges) => writeChanges(parts, work, run, page, changes, context);
  if (!mayBeAllNew(parts, run)) return write(await parts.pages.compare(run, page));
  try {
    return await write(assumeNew(page));
  } catch (error) {
    if (!(error instanceof KnownRecordError)) throw error;
    return write(await parts.pages.compare(run, page));
  }
}

/** Whether all that the copy holds of the list may have come with this run. The own logic is to be told what is new before. */
function mayBeAllNew({ ownLogic }: SyncParts, { stored, records }: Run): boolean {
  return ownLogic === undefined && stored === records;
}

async function writeChanges(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  page: ReadPage,
  changes: PageChanges,
  context: SliceContext,
): Promise<Run | undefined> {
  const { created, changed, unusable, records } = changes;
  const batch = {
    changes: () => ({
      created: documentsAt(page, created),
      changed: documentsAt(page, changed),
    }),
    ids: idsOf(changes),
  };
  const written = await tellAndWrite(parts, work, run, batch, context, (parking) =>
    parts.pages.commit(work.claim, page, changes, (parts.now ?? Date.now)(), parking),
  );
  if (written === undefined) return undefined;
  if (unusable.length > 0) {
    context.logger.warn({ records: unusable.length }, 'records cannot be kept: they are set aside');
  }
  parts.onPage?.({ resource: work.resource.name, records });
  return written;
}

/** The documents at these places of a page. */
function documentsAt({ texts }: ReadPage, places: readonly number[]): ServiceDocument[] {
  return places.map((place) => JSON.parse(String(texts[place])));
}
