import { type Request, type Response, Router } from 'express';
import { MOST_SOUGHT } from '../../store/search-words.ts';
import type { InstanceStatus } from '../../sync/status-types.ts';
import { ownInstance, pathValue } from '../own-instance.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { actionsFor } from '../view/actions.ts';
import { formatInstant, formatNumber } from '../view/format.ts';
import { formatJson } from '../view/format-json.ts';
import {
  lastPage,
  listAddress,
  pageLinks,
  RECORDS_PER_PAGE,
  readListQuery,
  recordAddress,
} from '../view/paging.ts';
import { summarizeRecord } from '../view/record-summary.ts';
import type { WebDependencies, WebResource } from '../web-dependencies.ts';
import { notFound, WebError } from '../web-error.ts';

interface Place {
  status: InstanceStatus;
  resource: WebResource;
  /** The list's address. */
  base: string;
}

/** This session's instance and the resource in the path, or 404. */
async function placeOf(req: Request, deps: WebDependencies): Promise<Place> {
  const status = await ownInstance(req, deps);
  const resource = deps.resources.find(({ name }) => name === pathValue(req, 'resource'));
  if (!resource) throw notFound();
  return { status, resource, base: `/instances/${encodeURIComponent(status.id)}/${resource.name}` };
}

/** The session may see the list, so the answer may speak of the record. */
function noSuchRecord(name: string, base: string): WebError {
  return new WebError(404, 'No such record', `The copy of ${name} has no record with this id.`, {
    advice: 'It may have come under another id, or not been copied yet. Search the list for it.',
    back: { address: base, text: 'Back to the list' },
  });
}

/** Browsing and searching the copy, and one record of it. */
export function recordRoutes(deps: WebDependencies, renderPage: RenderPage): Router {
  const router = Router();

  router.get('/instances/:id/:resource', noStore, async (req, res) => {
    const place = await placeOf(req, deps);
    if (typeof req.query.record === 'string') await showRecord(place, req.query.record, res);
    else await showList(place, req, res);
  });

  router.get('/instances/:id/:resource/:recordId', noStore, async (req, res) => {
    await showRecord(await placeOf(req, deps), pathValue(req, 'recordId'), res);
  });

  async function showList({ status, resource, base }: Place, req: Request, res: Response) {
    const { search, page } = readListQuery(req.query);
    const found = await deps.records.browse(status.id, resource.name, {
      ...(search ? { search } : {}),
      offset: (page - 1) * RECORDS_PER_PAGE,
      limit: RECORDS_PER_PAGE,
    });
    const last = lastPage(found.total, RECORDS_PER_PAGE);
    if (page > last) {
      res.redirect(302, listAddress(base, { search, page: last }));
      return;
    }
    const rows = found.records.map((record) => {
      const copiedAt = new Date(record.updatedAt).toISOString();
      return {
        id: record.id,
        address: recordAddress(base, record.id),
        ...summarizeRecord(record.id, record.document),
        copiedAt,
        copiedText: formatInstant(copiedAt),
      };
    });
    renderPage(res, 200, 'records', {
      status,
      resource,
      base,
      search,
      rows,
      totalText: (found.hasMore ? 'more than ' : '') + formatNumber(found.total),
      total: found.total,
      pendingText: found.pending === 0 ? null : formatNumber(found.pending),
      pending: found.pending,
      pages: pageLinks(base, { search, page }, last),
      soughtText: found.isShortened ? formatNumber(MOST_SOUGHT) : null,
    });
  }

  async function showRecord({ status, resource, base }: Place, id: string, res: Response) {
    const record = await deps.records.find(status.id, resource.name, id);
    if (!record) throw noSuchRecord(status.name, base);
    const copiedAt = new Date(record.updatedAt).toISOString();
    const deletedAt = record.deletedAt === null ? null : new Date(record.deletedAt).toISOString();
    renderPage(res, 200, 'record', {
      status,
      resource,
      base,
      record,
      ...summarizeRecord(record.id, record.document),
      pretty: formatJson(record.document),
      copiedAt,
      copiedText: formatInstant(copiedAt),
      deletedAt,
      deletedText: formatInstant(deletedAt),
      lengthText: formatNumber(record.document.length),
      canReplay: actionsFor(status).includes('replay'),
    });
  }

  return router;
}
