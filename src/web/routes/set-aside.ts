import { Router } from 'express';
import { ownInstance } from '../own-instance.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { setAsideSections } from '../view/set-aside-values.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** The page of everything that the lists of an instance have set aside; the dashboard shows the first of it. */
export function setAsideRoutes(deps: WebDependencies, renderPage: RenderPage): Router {
  const router = Router();

  router.get('/instances/:id/set-aside', noStore, async (req, res) => {
    const status = await ownInstance(req, deps);
    const sections = setAsideSections(deps.resources, await deps.control.setAside(status.id));
    renderPage(res, 200, 'set-aside', { status, sections });
  });

  return router;
}
