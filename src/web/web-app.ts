import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';
import express, { type Express } from 'express';
import { refuseCrossSite } from './cross-site.ts';
import { errorPages, refusePathless, unknownAddress } from './error-pages.ts';
import { operatorGate } from './operator-gate.ts';
import { pageRenderer, VIEWS_DIRECTORY } from './render.ts';
import { requestLog } from './request-log.ts';
import { exportRoutes } from './routes/export.ts';
import { healthRoutes } from './routes/health.ts';
import { installRoutes } from './routes/install.ts';
import { instanceRoutes } from './routes/instance.ts';
import { landingRoutes } from './routes/landing.ts';
import { operationsRoutes, programAccess } from './routes/operations.ts';
import { recordRoutes } from './routes/records.ts';
import { securityHeaders } from './security.ts';
import { BrowserCookies } from './sessions.ts';
import type { Site, WebDependencies } from './web-dependencies.ts';

export type { OperationsOverview, WebDependencies, WebResource } from './web-dependencies.ts';

/** The browser loads this library, which updates an open page. */
const IDIOMORPH = dirname(fileURLToPath(import.meta.resolve('idiomorph')));

/**
 * Puts the web app together. Health routes and assets come before the sessions, so that they answer without the database.
 */
export function createWebApp(deps: WebDependencies): Express {
  const now = deps.now ?? Date.now;
  const https = deps.publicUrl.startsWith('https:');
  const installUrl = `${deps.publicUrl}/install`;
  const { appInfo, ownViews, isSandbox, sandboxUrl = null, production: cache } = deps;
  const facts = { ...appInfo, installUrl, isSandbox, sandboxUrl };
  const renderPage = pageRenderer(facts, ownViews, { cache, now });
  const site: Site = { resources: deps.resources, name: appInfo.name, support: appInfo.support };
  const pages = { renderPage, site, now };
  const cookies = new BrowserCookies(deps.browsers, deps.sessionSecret, https);

  const app = express();
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  // A number, never `true`: any client can write the left end of X-Forwarded-For.
  app.set('trust proxy', deps.proxyHops);

  app.use(requestLog(deps.logger, deps.onRequest));
  app.use(securityHeaders(https));
  app.use(refuseCrossSite(deps.publicUrl));
  app.use(healthRoutes(deps));
  app.use('/assets', (_req, res, next) => {
    // Browsers revalidate each time (ETag, 304), as two versions of the app may run.
    res.set('Cache-Control', 'public, no-cache');
    next();
  });
  app.use('/assets/brand.css', (_req, res) => {
    res.type('css').send(`:root { --brand: ${appInfo.colour}; }\n`);
  });
  const views = [...(ownViews === undefined ? [] : [ownViews]), VIEWS_DIRECTORY];
  for (const directory of [...views.map((folder) => join(folder, 'assets')), IDIOMORPH]) {
    app.use('/assets', express.static(directory, { index: false, redirect: false }));
  }
  const { operations } = deps;
  const gate = operations && operatorGate(operations.password, deps.redis, deps.limits);
  if (gate) app.use(operationsRoutes(deps, gate, pages));
  app.use(refusePathless);
  app.use(cookies.sessions);
  if (gate) app.use(programAccess(deps, gate));
  app.use(landingRoutes(deps, cookies, pages));
  app.use(installRoutes(deps, cookies, renderPage));
  app.use(exportRoutes(deps));
  app.use(instanceRoutes(deps, pages));
  app.use(recordRoutes(deps, pages));
  app.use(unknownAddress);
  app.use(errorPages(renderPage, installUrl));
  return app;
}
