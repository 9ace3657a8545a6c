import { Router } from 'express';
import { operatorGate } from '../operator-gate.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { formatInstant, formatNumber } from '../view/format.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** The operator's page: every instance and the queues; without a configured password it is not there. */
export function operationsRoutes(deps: WebDependencies, renderPage: RenderPage): Router {
  const router = Router();
  const { operations } = deps;
  if (!operations) return router;
  const gate = operatorGate(operations.password, deps.redis, deps.limits);
  router.get('/ops', noStore, gate, async (_req, res) => {
    const { instances, queues, workers } = await operations.overview();
    renderPage(res, 200, 'operations', {
      instances,
      queues,
      workers,
      resources: deps.resources,
      formatInstant,
      formatNumber,
    });
  });
  return router;
}
