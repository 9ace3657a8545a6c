import { rejectedAgain, ServiceError } from '../client/errors.ts';
import type { ListPage } from '../client/list-page.ts';
import type { Instance } from '../store/instances.ts';
import type { Run, RunClaim } from '../store/runs.ts';
import { callOwnLogic, documentsAt } from './own-logic-call.ts';
import type { Resource } from './resources.ts';
import type { SliceContext, SyncParts } from './slice-parts.ts';

/** What a slice works on. */
export interface SliceWork {
  instance: Instance;
  resource: Resource;
  claim: RunClaim;
}

/** What became of one page. */
export type PageStep =
  | { kind: 'written'; run: Run }
  /** the limit grants no request yet */
  | { kind: 'wait'; waitMs: number }
  /** the run is somebody else's now, or the instance is not active any more; nothing was written */
  | { kind: 'lost' };

/**
 * One page of one resource: address, token, permit, request; then the integrator's logic, then records and
 * cursor in one transaction.
 *
 * @throws ServiceError
 */
export async function syncPage(
  parts: SyncParts,
  work: SliceWork,
  run: Run,
  context: SliceContext,
): Promise<PageStep> {
  const { instance, resource, claim } = work;
  const fetched = await fetchPage(parts, work, run.cursor, context);
  if ('waitMs' in fetched) return { kind: 'wait', waitMs: fetched.waitMs };

  const changes = await parts.pages.compare(run, fetched);
  const { created, changed, skipped, records } = changes;
  if (skipped > 0) context.logger.warn({ skipped }, 'records without a usable id were left out');
  await callOwnLogic(
    parts,
    { instance, resource: resource.name },
    { created: documentsAt(fetched.results, created), changed: documentsAt(fetched.results, changed) },
    context,
  );
  const written = await parts.pages.commit(claim, fetched, changes, (parts.now ?? Date.now)());
  if (written === undefined) return { kind: 'lost' };
  parts.onPage?.({ resource: resource.name, records });
  return { kind: 'written', run: written };
}

async function fetchPage(
  parts: SyncParts,
  { instance, resource }: SliceWork,
  cursor: string | null,
  context: SliceContext,
): Promise<ListPage | { waitMs: number }> {
  const { api, tokens } = parts;
  const url = api.pageAddress(resource.route, cursor);
  let rejected: string | undefined;
  for (;;) {
    const accessToken = await tokens.accessToken(instance.id, rejected);
    const admission = await api.acquire(instance.company_id ?? instance.id, resource.route);
    if (admission.permit === undefined) return { waitMs: admission.waitMs };
    try {
      return await api.listPage(url, admission.permit, accessToken, context.signal);
    } catch (error) {
      if (!(error instanceof ServiceError) || error.remedy !== 'refresh') throw error;
      if (rejected !== undefined) throw rejectedAgain(error);
      rejected = accessToken;
    }
  }
}
