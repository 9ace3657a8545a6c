import express, { type Request } from 'express';
import { ownInstanceId, pathValue } from './own-instance.ts';
import { actionsFor, findAction, type InstanceAction } from './view/actions.ts';
import type { WebDependencies } from './web-dependencies.ts';
import { notFound } from './web-error.ts';

/** Larger than any form of this app, in bytes. */
const MAX_FORM_BYTES = 10 * 1_024;

/** Reads a small form; 413 otherwise. */
export const readForm = express.urlencoded({ extended: false, limit: MAX_FORM_BYTES, parameterLimit: 20 });

/** What a page says after an action, by the value of `done` in its address. */
const MESSAGES = {
  sync: 'A sync has been started.',
  retry: 'The handler gets the dead letters again now.',
  replay: 'The handler gets the records again now.',
  'confirm-deletions': 'The deletions are confirmed: the records are deleted from the copy.',
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

/** What a form asks for. */
export interface AskedAction {
  action: InstanceAction;
  /** The list; undefined for all of the instance. */
  resource: string | undefined;
}

/**
 * The action that a form's address names.
 *
 * @throws WebError 404 when there is no such action or list
 */
export function askedAction(req: Request, { resources }: Pick<WebDependencies, 'resources'>): AskedAction {
  const resource = req.params.resource === undefined ? undefined : pathValue(req, 'resource');
  const action = findAction(pathValue(req, 'action'), resource !== undefined);
  const isKnown = resource === undefined || resources.some(({ name }) => name === resource);
  if (action === undefined || !isKnown) throw notFound();
  return { action, resource };
}

/** The message for the page that an action has led to, if it has. */
export function doneMessage(req: Request): { tone: 'good' | 'warn'; text: string } | undefined {
  const { done } = req.query;
  if (typeof done !== 'string' || !Object.hasOwn(MESSAGES, done)) return undefined;
  return { tone: done === 'nothing' ? 'warn' : 'good', text: MESSAGES[done as Done] };
}

/**
 * Does what a button says.
 *
 * @throws WebError 404 when this browser does not see the instance
 */
export async function actOn(
  deps: Pick<WebDependencies, 'browsers' | 'control'>,
  req: Request,
  { action, resource }: AskedAction,
): Promise<Done> {
  const { browsers, control } = deps;
  const { id, browserId } = await ownInstanceId(req, deps);
  const status = await control.status(id);
  if (!status) throw notFound();
  const deleteData = action === 'disconnect' && req.body?.delete_data === 'yes';
  const record: unknown = req.body?.id;
  const isGone = status.status === 'disconnected';
  // To disconnect a company once more makes sense only to delete the copy that was kept.
  if (!actionsFor(status).includes(action) || (isGone && action === 'disconnect' && !deleteData))
    return 'nothing';
  const ways: Record<InstanceAction, () => Promise<boolean>> = {
    sync: () => control.syncNow(id, resource),
    retry: () => control.retry(id, resource),
    replay: () => control.replay(id, resource, typeof record === 'string' ? record : undefined),
    'confirm-deletions': () => control.confirmDeletions(id, resource),
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
