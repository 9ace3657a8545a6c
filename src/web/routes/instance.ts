import { Router } from 'express';
import { SET_ASIDE_IN_STATUS } from '../../sync/status-types.ts';
import { checkedForm, csrfToken, formMark } from '../csrf.ts';
import { explainDone } from '../done-action.ts';
import { mayAccess } from '../instance-access.ts';
import { actOn, isAction } from '../instance-actions.ts';
import type { LiveStreams } from '../live-streams.ts';
import { ownInstance, ownInstanceId, pathValue } from '../own-instance.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import { changeSession, takeFlash } from '../session-changes.ts';
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
    const status = await ownInstance(req, deps.control);
    const data = {
      status,
      installedText: formatInstant(status.installed_at),
      resources: deps.resources.filter(({ name }) => status.resources[name]),
      actions: actionsFor(status),
      setAsideLines: SET_ASIDE_IN_STATUS,
      setAsideKinds: SET_ASIDE_KINDS,
      values: dashboardValues(status, deps.resources, {}, now()),
      formatInstant,
      flash: await takeFlash(deps.redis, req),
      csrf: await csrfToken(deps.redis, req),
      formMark: formMark(req),
    };
    renderPage(res, 200, 'instance', data);
  });

  router.get('/instances/:id/status', noStore, async (req, res) => {
    res.json(await ownInstance(req, deps.control));
  });

  router.get('/instances/:id/live', noStore, async (req, res) => {
    const { id } = await ownInstance(req, deps.control);
    if (req.method !== 'HEAD') return live.watch(req, res, id);
    live.admit(req.sessionID, id);
    res.status(200).type('text/event-stream').end();
  });

  router.post(
    '/instances/:id/:action',
    noStore,
    async (req, _res, next) => {
      await ownInstanceId(req, deps.control);
      if (!isAction(pathValue(req, 'action'))) throw notFound();
      next();
    },
    ...checkedForm,
    async (req, res) => {
      const id = await ownInstanceId(req, deps.control);
      const action = pathValue(req, 'action');
      if (!isAction(action)) throw notFound();
      const { sessionID } = req;
      const flash = await actOn(deps, req, id, action);
      res.locals.log.info({ instanceId: id, action }, 'instance action');
      if (req.sessionID !== sessionID) live.endSession(sessionID);
      const dashboard = `/instances/${encodeURIComponent(id)}`;
      try {
        await changeSession(deps.redis, req, (session) => {
          session.flash = flash;
        });
        const shown = (await mayAccess(req.session, id, deps.control)) && (await deps.control.status(id));
        res.redirect(303, shown ? dashboard : '/');
      } catch (error) {
        throw explainDone(error, flash, dashboard);
      }
    },
  );

  return router;
}
