import { Router } from 'express';
import { INSTANCES_PER_PAGE } from '../../sync/status-types.ts';
import { operatorGate } from '../operator-gate.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { formatInstant, formatNumber } from '../view/format.ts';
import { lastPage, pageLinks, readListQuery } from '../view/paging.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** How many are in which state, in words. */
function countsText(counts: Record<string, number>): string {
  const parts = Object.entries(counts).map(
    ([state, count]) => `${state.replaceAll('_', ' ')} ${formatNumber(count)}`,
  );
  return parts.join(', ');
}

/** What opens with the operator's password: the page of every instance and the queues, and reading for programs. */
export function operationsRoutes(deps: WebDependencies, renderPage: RenderPage): Router {
  const router = Router();
  const { operations } = deps;
  if (!operations) return router;
  const gate = operatorGate(operations.password, deps.redis, deps.limits);
  // A program reads with the operator's password what a browser reads with its session.
  router.get(['/instances/:id/status', '/instances/:id/:resource.ndjson'], async (req, res, next) => {
    if (req.get('authorization') !== undefined) {
      await gate(req, res, () => undefined);
      res.locals.isOperator = true;
    }
    next();
  });
  router.get('/ops', noStore, gate, async (req, res) => {
    const { checks } = await deps.readiness();
    const overview = await operations.overview(readListQuery(req.query).page);
    const { instances, page, total, states, runs, queues, workers } = overview;
    renderPage(res, 200, 'operations', {
      instances,
      total,
      statesText: countsText(states),
      runsText: countsText(runs),
      pages: pageLinks('/ops', { search: '', page }, lastPage(total, INSTANCES_PER_PAGE)),
      queues,
      workers,
      troubles: Object.entries(checks).filter(([, outcome]) => outcome !== 'ok'),
      resources: deps.resources,
      formatInstant,
      formatNumber,
    });
  });
  return router;
}
