import { type Request, Router } from 'express';
import { checkedForm, csrfToken, formMark } from '../csrf.ts';
import { disconnect } from '../disconnect.ts';
import { mayAccess } from '../instance-access.ts';
import type { LiveStreams } from '../live-streams.ts';
import { logOutOthers } from '../log-out-others.ts';
import { ownInstance, ownInstanceId, pathValue } from '../own-instance.ts';
import type { RenderPage } from '../render.ts';
import { noStore } from '../security.ts';
import type { Flash } from '../session.ts';
import { changeSession, takeFlash } from '../session-changes.ts';
import { actionsFor, type InstanceAction } from '../view/actions.ts';
import { dashboardValues } from '../view/dashboard-values.ts';
import { formatInstant } from '../view/format.ts';
import { SET_ASIDE_LINES } from '../view/set-aside-values.ts';
import type { WebDependencies } from '../web-dependencies.ts';
import { notFound } from '../web-error.ts';

const DONE: Record<InstanceAction, string> = {
  sync: 'A sync has been started.',
  retry: 'What is still parked is tried again now.',
  pause: 'Paused. Nothing is copied until you resume, or somebody installs the app again.',
  resume: 'Resumed. The sync goes on where it stopped.',
  'logout-others': 'Every other browser is logged out of this company.',
  disconnect: 'Disconnected. The app has given up its access.',
  forget: 'The company is off the list of this browser.',
};

function isAction(value: string): value is InstanceAction {
  return Object.hasOwn(DONE, value);
}

/** The form's confirmation to delete the copy as well; a checkbox that is not set is not sent. */
function wantsDataDeleted(req: Request): boolean {
  return typeof (req.body as Record<string, unknown> | undefined)?.delete_data === 'string';
}

async function act(deps: WebDependencies, req: Request, id: string, action: InstanceAction): Promise<Flash> {
  const { control, redis } = deps;
  const status = await ownInstance(req, control);
  const deleteData = wantsDataDeleted(req);
  const gone = status.status === 'disconnected';
  // To disconnect what is disconnected has one sense: to delete the copy that was kept.
  if (!actionsFor(status).includes(action) || (gone && action === 'disconnect' && !deleteData)) {
    return {
      tone: 'warn',
      text: 'That is not possible in the state the company is in now. Nothing was done.',
    };
  }
  if (action === 'sync') await control.syncNow(id);
  else if (action === 'retry') await control.retryParked(id);
  else if (action === 'pause') await control.pause(id);
  else if (action === 'resume') await control.resume(id);
  else if (action === 'forget') {
    await changeSession(redis, req, (session) => {
      session.instances = session.instances?.filter((known) => known !== id) ?? [];
    });
  } else if (action === 'logout-others') await logOutOthers(deps, req, id);
  else {
    await disconnect(deps, req, status, deleteData);
    const said = gone ? [] : [DONE.disconnect];
    if (deleteData) return { tone: 'good', text: [...said, 'The copied data is deleted.'].join(' ') };
  }
  return { tone: 'good', text: DONE[action] };
}

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
      setAsideLines: SET_ASIDE_LINES,
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

  router.get('/instances/:id/live', async (req, res) => {
    const { id } = await ownInstance(req, deps.control);
    if (req.method === 'HEAD') res.status(200).type('text/event-stream').end();
    else live.watch(req, res, id);
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
      const flash = await act(deps, req, id, action);
      if (req.sessionID !== sessionID) live.endSession(sessionID);
      await changeSession(deps.redis, req, (session) => {
        session.flash = flash;
      });
      res.locals.log.info({ instanceId: id, action }, 'instance action');
      const shown = (await mayAccess(req.session, id, deps.control)) && (await deps.control.status(id));
      res.redirect(303, shown ? `/instances/${encodeURIComponent(id)}` : '/');
    },
  );

  return router;
}
