import type { Request } from 'express';
import type { InstanceControl, InstanceStatus } from '../sync/status-types.ts';
import { mayAccess } from './instance-access.ts';
import { notFound } from './web-error.ts';

/** One value of the path; Express allows several under one name, these routes do not. */
export function pathValue(req: Request, name: string): string {
  const value = req.params[name];
  return typeof value === 'string' ? value : '';
}

/**
 * The id in the path, if this session sees that instance.
 *
 * @throws WebError 404 otherwise, alike for an instance of somebody else and for none
 */
export async function ownInstanceId(req: Request, control: InstanceControl): Promise<string> {
  const id = pathValue(req, 'id');
  if (!(await mayAccess(req.session, id, control))) throw notFound();
  return id;
}

/**
 * The state of this session's instance.
 *
 * @throws WebError 404 when the session does not see it, or when it is gone
 */
export async function ownInstance(req: Request, control: InstanceControl): Promise<InstanceStatus> {
  const status = await control.status(await ownInstanceId(req, control));
  if (!status) throw notFound();
  return status;
}
