import type { Request } from 'express';
import type { Instance } from '../store/instances.ts';
import type { InstanceStatus } from '../sync/status-types.ts';
import type { WebDependencies, WebResource } from './web-dependencies.ts';
import { notFound, signedOut } from './web-error.ts';

/** What pages of records show of an instance. */
type Company = Pick<Instance, 'id' | 'company_id' | 'name' | 'status'>;

type Access = Pick<WebDependencies, 'browsers' | 'status' | 'instances' | 'resources'>;

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
  deps: Access,
): Promise<{ status: InstanceStatus; browserId: string | undefined }> {
  const { id } = await ownCompany(req, deps);
  const browserId = req.res?.locals.isOperator === true ? undefined : (req.session.browserId ?? '');
  const status = await deps.status.read(id);
  if (!status) throw notFound();
  return { status, browserId };
}

/**
 * The same, without the status, which takes many queries.
 *
 * @throws WebError 404 as {@link ownInstance}
 */
export async function ownCompany(req: Request, { browsers, instances }: Access): Promise<Company> {
  const id = pathValue(req, 'id');
  const isSeen =
    req.res?.locals.isOperator === true || (await browsers.sees(req.session.browserId ?? '', id));
  const company = isSeen ? await instances.find(id) : undefined;
  if (company !== undefined) return company;
  throw (await browsers.isSignedOut(req.session.browserId ?? '', id)) ? signedOut() : notFound();
}

/**
 * What stands around every page of an instance: its tabs, and the other companies of this browser.
 *
 * @param here the path of the tab below the instance's; empty for the first one
 */
export async function tabsOf(
  req: Request,
  { browsers, resources }: Access,
  { id, name }: Pick<Company, 'id' | 'name'>,
  here: string,
) {
  const addressOf = (of: string, path: string) => `${instanceAddress(of)}${path && `/${path}`}`;
  const pages = [
    { name: '', title: 'Overview' },
    ...resources,
    { name: 'runs', title: 'History' },
    { name: 'settings', title: 'Settings' },
  ];
  const seen = await browsers.instancesOf(req.session.browserId ?? '');
  return {
    companyName: name,
    tabs: pages.map((page) => {
      return { title: page.title, address: addressOf(id, page.name), isHere: page.name === here };
    }),
    others: seen
      .filter((other) => other.id !== id)
      .map((other) => ({ name: other.name, address: addressOf(other.id, here) })),
  };
}

/** The instance and the list in the path, and the list's address. */
export interface OwnList {
  company: Company;
  resource: WebResource;
  base: string;
}

/** @throws WebError 404 when this browser does not see the instance, or there is no such list */
export async function ownList(req: Request, deps: Access): Promise<OwnList> {
  const company = await ownCompany(req, deps);
  const resource = deps.resources.find(({ name }) => name === pathValue(req, 'resource'));
  if (!resource) throw notFound();
  return { company, resource, base: `${instanceAddress(company.id)}/${resource.name}` };
}
