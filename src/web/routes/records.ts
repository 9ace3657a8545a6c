import { type Request, type Response, Router } from 'express';
import { MOST_SOUGHT } from '../../store/search-words.ts';
import { doneMessage, possibleActions } from '../actions.ts';
import { type OwnList, ownInstance, ownList, pathValue, tabsOf } from '../own-instance.ts';
import type { Pages } from '../render.ts';
import { noStore } from '../security.ts';
import { formatNumber } from '../view/format.ts';
import { freshnessView } from '../view/list-view.ts';
import {
  lastPage,
  listAddress,
  pageLinks,
  RECORDS_PER_PAGE,
  readListQuery,
  recordAddress,
} from '../view/paging.ts';
import { recordView } from '../view/record-view.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { WebError } from '../web-error.ts';

/** Browsing and searching the copy, and one record of it. */
export function recordRoutes(deps: WebDependencies, { renderPage, now }: Pages): Router {
  const router = Router();

  router.get('/instances/:id/:resource', noStore, async (req, res) => {
    const list = await ownList(req, deps);
    if (typeof req.query.record === 'string') await showRecord(list, req.query.record, req, res);
    else await showList(list, req, res);
  });

  router.get('/instances/:id/:resource/:recordId', noStore, async (req, res) => {
    await showRecord(await ownList(req, deps), pathValue(req, 'recordId'), req, res);
  });

  async function showList({ company, resource, base }: OwnList, req: Request, res: Response) {
    const { search, page } = readListQuery(req.query);
    const found = await deps.records.browse(company.id, resource.name, {
      ...(search ? { search } : {}),
      offset: (page - 1) * RECORDS_PER_PAGE,
      limit: RECORDS_PER_PAGE,
    });
    const freshness = await deps.records.freshness(company.id, resource.name);
    const last = lastPage(found.total, RECORDS_PER_PAGE);
    if (page > last) {
      res.redirect(302, listAddress(base, { search, page: last }));
      return;
    }
    renderPage(res, 200, 'records', {
      ...(await tabsOf(req, deps, company, resource.name)),
      flash: req.query.done && doneMessage(req, (await ownInstance(req, deps)).status),
      company,
      resource,
      base,
      search,
      query: search === '' ? '' : `?${new URLSearchParams({ q: search })}`,
      freshness: freshnessView(freshness, found.total > 0, now()),
      columns: (resource.columns ?? []).slice(1),
      rows: found.records.map((record) => ({
        ...recordView(record, resource),
        address: recordAddress(base, record.id),
      })),
      total: found.total,
      hasMore: found.hasMore,
      pending: found.pending,
      pages: pageLinks(base, { search, page }, last),
      soughtText: found.isShortened ? formatNumber(MOST_SOUGHT) : null,
    });
  }

  async function showRecord({ company, resource, base }: OwnList, id: string, req: Request, res: Response) {
    const record = await deps.records.find(company.id, resource.name, id);
    const links = [{ address: base, text: 'Back to the list' }];
    if (!record) {
      throw new WebError(404, 'No such record', `The copy of ${company.name} has no record with this id.`, {
        advice: 'It is erased, or not copied yet. Search the list for it.',
        links,
      });
    }
    const { document, isCut } = record;
    if (req.query.raw !== undefined) {
      const erased = 'The content of this record was erased.';
      const large = 'This record is too large for a page: it is in the download.';
      const why = document === null ? erased : large;
      if (document === null || isCut) throw new WebError(404, 'Not shown here', why, { links });
      // As the service sent it.
      res.type('json').send(document);
      return;
    }
    const address = recordAddress(base, record.id);
    const status = await deps.status.read(company.id);
    const freshness = await deps.records.freshness(company.id, resource.name);
    renderPage(res, 200, 'record', {
      ...(await tabsOf(req, deps, company, resource.name)),
      flash: status && doneMessage(req, status),
      company,
      resource,
      base,
      ...recordView(record, resource),
      freshness: freshnessView(freshness, true, now()),
      page: address.includes('?') ? resource.name : `${resource.name}/${id}`,
      rawAddress: `${address}${address.includes('?') ? '&' : '?'}raw`,
      actions: status === undefined ? [] : possibleActions(status, resource.name),
    });
  }

  return router;
}
