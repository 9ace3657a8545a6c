import { Router } from 'express';
import { readForm } from '../actions.ts';
import type { Pages } from '../render.ts';
import { noStore } from '../security.ts';
import type { BrowserCookies } from '../sessions.ts';
import { listOf } from '../view/format.ts';
import { instanceMessage } from '../view/instance-message.ts';
import type { WebDependencies } from '../web-dependencies.ts';

const FORGOTTEN = { tone: 'good', text: 'This browser no longer lists the company.' };

/** The landing page with this browser's companies, newest first, and the log-out. */
export function landingRoutes(deps: WebDependencies, cookies: BrowserCookies, pages: Pages): Router {
  const { browsers } = deps;
  const { renderPage, site, now } = pages;
  const router = Router();
  const copied = listOf(site.resources.map(({ title }) => title));

  router.get('/', noStore, async (req, res) => {
    const { browserId } = req.session;
    const seen = browserId === undefined ? [] : await browsers.instancesOf(browserId);
    const statuses = await Promise.all(seen.map(({ id }) => deps.status.read(id)));
    const instances = statuses
      .filter((status) => status !== undefined)
      .map((status) => ({ ...status, message: instanceMessage(status, site, now()) }));
    const unknown = instances
      .filter(({ company_id }) => company_id === null)
      .map(({ name }) => `“${name}”`)
      .join(', ');
    renderPage(res, 200, 'landing', {
      instances,
      unknown,
      copied,
      flash: req.query.done === 'forget' ? FORGOTTEN : undefined,
    });
  });

  router.post('/logout', noStore, readForm, async (req, res) => {
    const { browserId } = req.session;
    if (browserId !== undefined) {
      await browsers.logOut(browserId);
      res.locals.log.info('logged out');
    }
    cookies.clear(req);
    res.redirect(303, '/');
  });

  return router;
}
