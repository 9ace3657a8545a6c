import { join } from 'node:path';
import express, { type Express } from 'express';
import { refuseCrossSite } from './cross-site.ts';
import { errorPages, refusePathless, unknownAddress } from './error-pages.ts';
import { livePresenter, outageEvent } from './live-presenter.ts';
import { LiveStreams } from './live-streams.ts';
import { pageRenderer, VIEWS_DIRECTORY } from './render.ts';
import { requestLog } from './request-log.ts';
import { exportRoutes } from './routes/export.ts';
import { healthRoutes } from './routes/health.ts';
import { installRoutes } from './routes/install.ts';
import { instanceRoutes } from './routes/instance.ts';
import { landingRoutes } from './routes/landing.ts';
import { operationsRoutes } from './routes/operations.ts';
import { recordRoutes } from './routes/records.ts';
import { securityHeaders } from './security.ts';
import { BrowserCookies } from './sessions.ts';
import type { WebDependencies } from './web-dependencies.ts';

export type { OperationsOverview, WebDependencies, WebResource } from './web-dependencies.ts';

/**
 * Puts the web app together: who answers what, in which order.
 * Machines' addresses and assets come before the sessions, so that they answer when the database does not.
 */
export function createWebApp(deps: WebDependencies): Express {
  const now = deps.now ?? Date.now;
  const https = deps.publicUrl.startsWith('https:');
  const renderPage = pageRenderer(
    {
      installUrl: `${deps.publicUrl}/install`,
      isSandbox: deps.isSandbox,
      sandboxUrl: deps.sandboxUrl ?? null,
    },
    deps.production,
  );
  const cookies = new BrowserCookies(deps.browsers, deps.sessionSecret, https);
  const live = new LiveStreams(
    deps,
    () => livePresenter(deps.resources, now),
    outageEvent(deps.resources),
    deps.live,
  );
  deps.shutdown?.addEventListener('abort', () => live.close(), { once: true });

  const app = express();
  app.disable('x-powered-by');
  app.set('query parser', 'simple');
  // A number, never `true`: what stands further left in X-Forwarded-For any client could have written.
  app.set('trust proxy', deps.proxyHops);

  app.use(requestLog(deps.logger, deps.onRequest));
  app.use(securityHeaders(https));
  app.use(refuseCrossSite(deps.publicUrl));
  app.use(healthRoutes(deps));
  // Browsers ask each time whether their copy is still good (ETag, 304), also while two versions of the app run.
  const assets = express.static(join(VIEWS_DIRECTORY, 'assets'), {
    index: false,
    redirect: false,
    setHeaders: (res) => res.setHeader('Cache-Control', 'public, no-cache'),
  });
  app.use('/assets', assets);
  app.use(operationsRoutes(deps, renderPage));
  app.use(refusePathless);
  app.use(cookies.sessions);
  app.use(landingRoutes(deps, renderPage, cookies, now));
  app.use(installRoutes(deps, cookies));
  app.use(exportRoutes(deps));
  app.use(instanceRoutes(deps, renderPage, live, now));
  app.use(recordRoutes(deps, renderPage));
  app.use(unknownAddress);
  app.use(errorPages(renderPage));
  return app;
}
