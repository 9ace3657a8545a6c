import { Router } from 'express';
import { doneMessage, readForm } from '../instance-actions.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import type { BrowserCookies } from '../sessions.ts';
import { formatInstant, listOf } from '../view/format.ts';
import { instanceMessage } from '../view/instance-message.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** The front page: what the app does, the way to install it, and what this browser sees, newest first. And its log-out. */
export function landingRoutes(
  deps: WebDependencies,
  renderPage: RenderPage,
  cookies: BrowserCookies,
  now: () => number,
): Router {
  const router = Router();
  const { browsers, control } = deps;
  const copied = listOf(deps.resources.map(({ title }) => title));

  router.get('/', noStore, async (req, res) => {
    const { browserId } = req.session;
    const ids = browserId === undefined ? [] : await browsers.instancesOf(browserId);
    const statuses = await Promise.all(ids.map((id) => control.status(id)));
    const instances = statuses
      .filter((status) => status !== undefined)
      .map((status) => ({
        id: status.id,
        name: status.name,
        installedAt: status.installed_at,
        installedText: formatInstant(status.installed_at),
        isKnown: status.company_id !== null,
        message: instanceMessage(status, deps.resources, now()),
      }));
    const unknown = instances
      .filter(({ isKnown }) => !isKnown)
      .map(({ name }) => `“${name}”`)
      .join(', ');
    renderPage(res, 200, 'landing', { instances, unknown, copied, flash: doneMessage(req) });
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
