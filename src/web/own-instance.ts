import type { Request } from 'express';
import type { InstanceStatus } from '../sync/status-types.ts';
import type { WebDependencies, WebResource } from './web-dependencies.ts';
import { notFound } from './web-error.ts';

type Access = Pick<WebDependencies, 'browsers' | 'control' | 'resources'>;

/** A value of the path. */
export function pathValue(req: Request, name: string): string {
  const value = req.params[name];
  return typeof value === 'string' ? value : '';
}

/** The dashboard's path. */
export function instanceAddress(id: string): string {
  return `/instances/${encodeURIComponent(id)}`;
}

/**
 * The instance in the path, and the browser that sees it. An operator sees every instance.
 *
 * @throws WebError 404 for an unknown instance, and for one that the browser does not see
 */
export async function ownInstance(
  req: Request,
  { browsers, control }: Access,
): Promise<{ status: InstanceStatus; browserId: string | undefined }> {
  const id = pathValue(req, 'id');
  const browserId = req.res?.locals.isOperator === true ? undefined : (req.session.browserId ?? '');
  if (browserId !== undefined && !(await browsers.sees(browserId, id))) throw notFound();
  const status = await control.status(id);
  if (!status) throw notFound();
  return { status, browserId };
}

/** The instance and the list in the path, and the list's address. */
export interface OwnList {
  status: InstanceStatus;
  resource: WebResource;
  base: string;
}

/** @throws WebError 404 when this browser does not see the instance, or there is no such list */
export async function ownList(req: Request, deps: Access): Promise<OwnList> {
  const { status } = await ownInstance(req, deps);
  const resource = deps.resources.find(({ name }) => name === pathValue(req, 'resource'));
  if (!resource) throw notFound();
  return { status, resource, base: `${instanceAddress(status.id)}/${resource.name}` };
}
