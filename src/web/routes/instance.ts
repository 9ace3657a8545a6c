import { Router } from 'express';
import { SET_ASIDE_IN_STATUS } from '../../sync/status-types.ts';
import { actOn, doneMessage, isAction, readForm } from '../instance-actions.ts';
import type { LiveStreams } from '../live-streams.ts';
import { ownInstance, ownInstanceId, pathValue } from '../own-instance.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { actionsFor } from '../view/actions.ts';
import { dashboardValues } from '../view/dashboard-values.ts';
import { formatInstant } from '../view/format.ts';
import { SET_ASIDE_KINDS } from '../view/set-aside-values.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { notFound } from '../web-error.ts';

/** The page of one instance, the same facts as JSON and as a stream, and its buttons. */
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
      setAsideLines: SET_ASIDE_IN_STATUS,
      setAsideKinds: SET_ASIDE_KINDS,
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

  router.post(
    '/instances/:id/:action',
    noStore,
    async (req, _res, next) => {
      await ownInstanceId(req, deps);
      if (!isAction(pathValue(req, 'action'))) throw notFound();
      next();
    },
    readForm,
    async (req, res) => {
      const id = pathValue(req, 'id');
      const action = pathValue(req, 'action');
      if (!isAction(action)) throw notFound();
      const done = await actOn(deps, req, action);
      res.locals.log.info({ instanceId: id, action }, 'instance action');
      const page = action === 'forget' ? '/' : `/instances/${encodeURIComponent(id)}`;
      res.redirect(303, `${page}?done=${done}`);
    },
  );

  return router;
}
