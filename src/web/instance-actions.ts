import express, { type Request } from 'express';
import { ownInstanceId } from './own-instance.ts';
import { actionsFor, type InstanceAction } from './view/actions.ts';
import type { WebDependencies } from './web-dependencies.ts';
import { notFound } from './web-error.ts';

/** Larger than any form of this app, in bytes. */
const MAX_FORM_BYTES = 10 * 1_024;

/** Reads a small form; 413 otherwise. */
export const readForm = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES, parameterLimit: 20 });

/** What a page says after an action, by the value of `done` in its address. */
const MESSAGES = {
  sync: 'A sync has been started.',
  retry: 'What is still parked is tried again now.',
  pause: 'Paused. Nothing is copied until you resume, or somebody installs the app again.',
  resume: 'Resumed. The sync goes on where it stopped.',
  'logout-others': 'Every other browser is logged out of this company.',
  disconnect: 'Disconnected. The app has given up its access.',
  'disconnect-delete': 'Disconnected. The app has given up its access. The copied data is deleted.',
  delete: 'The copied data is deleted.',
  forget: 'The company is off the list of this browser.',
  nothing: 'That is not possible in the state the company is in now. Nothing was done.',
} as const;

export type Done = keyof typeof MESSAGES;

/** Whether a form's address names one of the buttons. */
export function isAction(value: string): value is InstanceAction {
  return Object.hasOwn(MESSAGES, value) && !['disconnect-delete', 'delete', 'nothing'].includes(value);
}

/** The message for the page that an action has led to, if it has. */
export function doneMessage(req: Request): { tone: 'good' | 'warn'; text: string } | undefined {
  const { done } = req.query;
  if (typeof done !== 'string' || !Object.hasOwn(MESSAGES, done)) return undefined;
  return { tone: done === 'nothing' ? 'warn' : 'good', text: MESSAGES[done as Done] };
}

/**
 * Does what one of an instance's buttons says.
 *
 * @throws WebError 404 when this browser does not see the instance
 */
export async function actOn(
  deps: Pick<WebDependencies, 'browsers' | 'control'>,
  req: Request,
  action: InstanceAction,
): Promise<Done> {
  const { browsers, control } = deps;
  const { id, browserId } = await ownInstanceId(req, deps);
  const status = await control.status(id);
  if (!status) throw notFound();
  // A checkbox that is not set is not sent.
  const deleteData = action === 'disconnect' && typeof req.body?.delete_data === 'string';
  const isGone = status.status === 'disconnected';
  // To disconnect a company once more makes sense only to delete the copy that was kept.
  if (!actionsFor(status).includes(action) || (isGone && action === 'disconnect' && !deleteData))
    return 'nothing';
  const ways: Record<InstanceAction, () => Promise<boolean>> = {
    sync: () => control.syncNow(id),
    retry: () => control.retryParked(id),
    pause: () => control.pause(id),
    resume: () => control.resume(id),
    'logout-others': () => browsers.logOutOthers(browserId, id).then(() => true),
    disconnect: () => control.disconnect(id, { deleteData, browserId }),
    forget: () => browsers.forget(browserId, id).then(() => true),
  };
  if (!(await ways[action]())) return 'nothing';
  if (!deleteData) return action;
  return isGone ? 'delete' : 'disconnect-delete';
}
