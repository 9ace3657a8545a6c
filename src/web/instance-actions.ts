import type { Request } from 'express';
import { formTooOld } from './csrf.ts';
import { disconnect } from './disconnect.ts';
import { generationSeen, mayAccess } from './instance-access.ts';
import { logOutOthers } from './log-out-others.ts';
import { ownInstance } from './own-instance.ts';
import type { Flash } from './session.ts';
import { refreshSession } from './session-actions.ts';
import { changeSession, inChangeTurn } from './session-changes.ts';
import { actionsFor, type InstanceAction } from './view/actions.ts';
import type { WebDependencies } from './web-dependencies.ts';
import { notFound } from './web-error.ts';

const DONE: Record<InstanceAction, string> = {
  sync: 'A sync has been started.',
  retry: 'What is still parked is tried again now.',
  pause: 'Paused. Nothing is copied until you resume, or somebody installs the app again.',
  resume: 'Resumed. The sync goes on where it stopped.',
  'logout-others': 'Every other browser is logged out of this company.',
  disconnect: 'Disconnected. The app has given up its access.',
  forget: 'The company is off the list of this browser.',
};

const NOT_POSSIBLE: Flash = {
  tone: 'warn',
  text: 'That is not possible in the state the company is in now. Nothing was done.',
};

/** Whether a form's address names one of the buttons. */
export function isAction(value: string): value is InstanceAction {
  return Object.hasOwn(DONE, value);
}

/** The form's confirmation to delete the copy as well; a checkbox that is not set is not sent. */
function wantsDataDeleted(req: Request): boolean {
  return typeof (req.body as Record<string, unknown> | undefined)?.delete_data === 'string';
}

/**
 * Does what one of an instance's buttons says, for a browser that sees the instance, also when that is done: its access
 * may end while a store is slow.
 *
 * @returns what the next page says of it
 * @throws WebError 404 when this browser does not see the instance, or not any more; the error of a form that is too old
 *   when its session was replaced meanwhile: nothing is done then
 */
export async function actOn(
  deps: Pick<WebDependencies, 'control' | 'redis'>,
  req: Request,
  id: string,
  action: InstanceAction,
): Promise<Flash> {
  const { control, redis } = deps;
  const status = await ownInstance(req, control);
  const generation = generationSeen(req.session, id);
  if (generation === undefined) throw notFound();
  const deleteData = action === 'disconnect' && wantsDataDeleted(req);
  const gone = status.status === 'disconnected';
  // To disconnect what is disconnected has one sense: to delete the copy that was kept.
  if (!actionsFor(status).includes(action) || (gone && action === 'disconnect' && !deleteData)) {
    return NOT_POSSIBLE;
  }
  const ways: Record<InstanceAction, () => Promise<boolean>> = {
    sync: () => control.syncNow(id, generation),
    retry: () => control.retryParked(id, generation),
    pause: () => control.pause(id, generation),
    resume: () => control.resume(id, generation),
    'logout-others': () => logOutOthers(deps, req, id).then(() => true),
    disconnect: () => disconnect(deps, req, status, { from: generation, deleteData }),
    forget: () =>
      changeSession(redis, req, (session) => {
        session.instances = session.instances?.filter((known) => known !== id) ?? [];
      }),
  };
  if (!(await ways[action]())) {
    // Another tab of this browser was quicker, and may have replaced its session; or somebody who has ended what it saw.
    if (!(await inChangeTurn(redis, req.sessionID, () => refreshSession(req)))) throw formTooOld;
    if (!(await mayAccess(req.session, id, control))) throw notFound();
    return NOT_POSSIBLE;
  }
  const said = deleteData && gone ? [] : [DONE[action]];
  return { tone: 'good', text: [...said, ...(deleteData ? ['The copied data is deleted.'] : [])].join(' ') };
}
