import express, { type Express, Router } from 'express';
import { noStore } from '../security.ts';
import type { WebDependencies } from '../web-dependencies.ts';

type HealthDependencies = Pick<WebDependencies, 'readiness' | 'metrics' | 'shutdown'>;

/** The health routes alone, for a worker. */
export function createHealthApp(deps: HealthDependencies): Express {
  return express().disable('x-powered-by').use(healthRoutes(deps));
}

/** Routes for machines. None needs a session. */
export function healthRoutes(deps: HealthDependencies): Router {
  const router = Router();

  router.get('/healthz', noStore, (_req, res) => {
    res.json({ status: 'alive' });
  });

  router.get('/readyz', noStore, async (_req, res) => {
    if (deps.shutdown?.aborted) {
      res.status(503).json({ status: 'shutting down', checks: {} });
      return;
    }
    const { ok, checks } = await deps.readiness();
    res.status(ok ? 200 : 503).json({ status: ok ? 'ready' : 'not ready', checks });
  });

  router.get('/metrics', noStore, async (_req, res) => {
    const { contentType, body } = await deps.metrics();
    res.setHeader('Content-Type', contentType);
    res.send(body);
  });

  return router;
}
