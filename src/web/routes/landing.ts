import { Router } from 'express';
import { csrfToken } from '../csrf.ts';
import { mayAccess } from '../instance-access.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { takeFlash } from '../session-changes.ts';
import { formatInstant, listOf } from '../view/format.ts';
import { instanceWords } from '../view/instance-words.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** The front page: what the app does, the way to install it, and this session's instances, newest first. */
export function landingRoutes(deps: WebDependencies, renderPage: RenderPage, now: () => number): Router {
  const router = Router();
  const copied = listOf(deps.resources.map(({ title }) => title));
  router.get('/', noStore, async (req, res) => {
    const ids = req.session.instances ?? [];
    const statuses = await Promise.all(
      ids.map(async (id) =>
        (await mayAccess(req.session, id, deps.control)) ? deps.control.status(id) : undefined,
      ),
    );
    const instances = statuses
      .filter((status) => status !== undefined)
      .map((status) => ({
        id: status.id,
        name: status.name,
        installedAt: status.installed_at,
        installedText: formatInstant(status.installed_at),
        isKnown: status.company_id !== null,
        words: instanceWords(status, deps.resources, now()),
      }));
    // Who has nothing to log out of gets no cookie either.
    const csrf = instances.length > 0 ? await csrfToken(deps.redis, req) : null;
    const flash = await takeFlash(deps.redis, req);
    renderPage(res, 200, 'landing', { instances, copied, csrf, flash });
  });
  return router;
}
