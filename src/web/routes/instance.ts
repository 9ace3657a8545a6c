import { type NextFunction, type Request, type Response, Router } from 'express';
import { PROBLEMS_IN_STATUS } from '../../sync/status-types.ts';
import { actOn, askedAction, doneMessage, readForm } from '../instance-actions.ts';
import type { LiveStreams } from '../live-streams.ts';
import { ownInstance, ownInstanceId, pathValue } from '../own-instance.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { actionsFor } from '../view/actions.ts';
import { dashboardValues } from '../view/dashboard-values.ts';
import { formatInstant } from '../view/format.ts';
import { PROBLEM_KINDS, problemSections } from '../view/problem-values.ts';
import type { WebDependencies } from '../web-dependencies.ts';

/** The page of one instance, the same facts as JSON and as a stream, all of its problems, and its buttons. */
export function instanceRoutes(
  deps: WebDependencies,
  renderPage: RenderPage,
  live: LiveStreams,
  now: () => number,
): Router {
  const router = Router();

  router.get('/instances/:id', noStore, async (req, res) => {
    const status = await ownInstance(req, deps);
    const data = {
      status,
      installedText: formatInstant(status.installed_at),
      resources: deps.resources.filter(({ name }) => status.resources[name]),
      actions: actionsFor(status),
      problemLines: PROBLEMS_IN_STATUS,
      problemKinds: PROBLEM_KINDS,
      values: dashboardValues(status, deps.resources, {}, now()),
      formatInstant,
      flash: doneMessage(req),
    };
    renderPage(res, 200, 'instance', data);
  });

  router.get('/instances/:id/status', noStore, async (req, res) => {
    res.json(await ownInstance(req, deps));
  });

  router.get('/instances/:id/live', noStore, async (req, res) => {
    const { id, browserId } = await ownInstanceId(req, deps);
    if (req.method !== 'HEAD') return live.watch(res, browserId, id);
    live.admit(browserId, id);
    res.status(200).type('text/event-stream').end();
  });

  router.get('/instances/:id/problems', noStore, async (req, res) => {
    const status = await ownInstance(req, deps);
    const found = await deps.control.problems(status.id);
    const address = `/instances/${encodeURIComponent(status.id)}`;
    const sections = problemSections(deps.resources, status.resources, found, address);
    renderPage(res, 200, 'problems', { status, sections });
  });

  for (const path of ['/instances/:id/:action', '/instances/:id/:resource/:action']) {
    router.post(path, noStore, checkAction, readForm, async (req, res) => {
      const asked = askedAction(req, deps);
      const id = pathValue(req, 'id');
      const done = await actOn(deps, req, asked);
      res.locals.log.info({ instanceId: id, ...asked }, 'instance action');
      const page = asked.action === 'forget' ? '/' : `/instances/${encodeURIComponent(id)}`;
      res.redirect(303, `${page}?done=${done}`);
    });
  }

  /** Before the form is read. */
  async function checkAction(req: Request, _res: Response, next: NextFunction) {
    await ownInstanceId(req, deps);
    askedAction(req, deps);
    next();
  }

  return router;
}
