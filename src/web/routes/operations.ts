import { Router } from 'express';
import { INSTANCES_PER_PAGE, type ListStatusJson } from '../../sync/status-types.ts';
import { operatorGate } from '../operator-gate.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { formatInstant, formatNumber } from '../view/format.ts';
import { lastPage, pageLinks, readListQuery } from '../view/paging.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** What a program reads with the operator's password, as a browser does with its session. */
const PROGRAM_PATHS = [
  '/instances/:id/status',
  '/instances/:id/:resource.ndjson',
  '/instances/:id/changes/:resource.ndjson',
];

/** How many are in which state, as text. */
function countsText(counts: Partial<Record<string, number>>): string {
  const parts = Object.entries(counts).map(
    ([state, count]) => `${state.replaceAll('_', ' ')} ${formatNumber(count ?? 0)}`,
  );
  return parts.join(', ');
}

/** What of a list needs somebody's attention, or the handler's. */
function countsOf({ handler, held_deletions, problems }: ListStatusJson): [string, number][] {
  const counts: [string, number][] = [
    ['Changes pending', handler?.pending ?? 0],
    ['Dead letters', handler?.dead_letters ?? 0],
    ['Rejected records', problems.rejected],
    ['Deletions held', held_deletions],
  ];
  return counts.filter(([, count]) => count > 0);
}

/** What opens with the operator's password: the page of every instance and the queues, and reading for programs. */
export function operationsRoutes(deps: WebDependencies, renderPage: RenderPage): Router {
  const router = Router();
  const { operations } = deps;
  if (!operations) return router;
  const gate = operatorGate(operations.password, deps.redis, deps.limits);
  router.get(PROGRAM_PATHS, async (req, res, next) => {
    if (req.get('authorization') !== undefined) {
      await gate(req, res, () => undefined);
      res.locals.isOperator = true;
    }
    next();
  });
  router.get('/ops', noStore, gate, async (req, res) => {
    const { checks } = await deps.readiness();
    const overview = await operations.overview(readListQuery(req.query).page);
    const { instances, page, total, states, lists, queues, workers } = overview;
    renderPage(res, 200, 'operations', {
      instances,
      total,
      statesText: countsText(states),
      listsText: countsText(lists),
      pages: pageLinks('/ops', { search: '', page }, lastPage(total, INSTANCES_PER_PAGE)),
      queues,
      workers,
      failedChecks: Object.entries(checks).filter(([, outcome]) => outcome !== 'ok'),
      resources: deps.resources,
      countsOf,
      formatInstant,
      formatNumber,
    });
  });
  return router;
}
