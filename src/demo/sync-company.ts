import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceStatus } from '../sync/status-types.ts';
import type { DemoCompany } from './companies.ts';
import { HttpSession } from './http-session.ts';

/** How often the progress is looked at, in milliseconds. */
const LOOK_EVERY_MS = 200;

/** Without any progress for so long, something is wrong; a window lasts a minute. In milliseconds. */
const PATIENCE_MS = 150_000;

/** Something that the demo should not see; its message is the reason that it ends with. */
export class DemoError extends Error {
  override readonly name = 'DemoError';
}

/** A company that was installed and synced. */
export interface SyncedCompany {
  company: DemoCompany;
  status: InstanceStatus;
}

/**
 * Installs a company through the service's consent page, as its administrator would, and follows the sync to its
 * end; then compares what the app hands out with what the service has.
 *
 * @param onProgress told of every status on the way
 * @throws DemoError when anything is not as it should be
 */
export async function syncCompany(
  appUrl: string,
  company: DemoCompany,
  onProgress: (status: InstanceStatus) => void,
): Promise<SyncedCompany> {
  const session = new HttpSession(appUrl);
  const instance = await install(session, company);
  const status = await follow(session, instance, onProgress);
  for (const [resource, count] of Object.entries(company.counts)) {
    if (status.resources[resource] !== undefined) await compare(session, instance, resource, count);
  }
  return { company, status };
}

async function install(session: HttpSession, company: DemoCompany): Promise<string> {
  const administrator = company.teammates.find(({ is_admin }) => is_admin);
  const consentPage = await session.get('/install');
  const dashboard = await session.post(consentPage.url, {
    teammate_id: administrator?.id ?? '',
    decision: 'approve',
  });
  if (dashboard.status === 200 && dashboard.url.pathname.startsWith('/instances/'))
    return dashboard.url.pathname;
  throw new DemoError(
    `${company.name} could not be installed: ${dashboard.status} at ${dashboard.url.pathname}`,
  );
}

async function follow(
  session: HttpSession,
  instance: string,
  onProgress: (status: InstanceStatus) => void,
): Promise<InstanceStatus> {
  let lastProgress = '';
  let lastProgressAt = performance.now();
  for (;;) {
    const status = (await session.get(`${instance}/status`)).json() as InstanceStatus;
    onProgress(status);
    const resources = Object.entries(status.resources);
    const failed = resources.find(([, { state }]) => state === 'failed');
    if (failed !== undefined) throw new DemoError(`${status.name}, ${failed[0]}: ${failed[1].error}`);
    if (status.status !== 'active')
      throw new DemoError(`${status.name} is ${status.status}: ${status.error ?? status.error_kind}`);
    if (resources.every(([, { state, finished_at }]) => state === 'idle' && finished_at !== null))
      return status;

    const progress = resources.map(([, { pages }]) => pages).join();
    if (progress !== lastProgress) lastProgressAt = performance.now();
    lastProgress = progress;
    if (performance.now() - lastProgressAt > PATIENCE_MS)
      throw new DemoError(`${status.name} makes no progress.`);
    await sleep(LOOK_EVERY_MS);
  }
}

async function compare(
  session: HttpSession,
  instance: string,
  resource: string,
  count: number,
): Promise<void> {
  const { body } = await session.get(`${instance}/${resource}.ndjson`);
  const ids = body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { id: string }).id);
  if (ids.length !== count || new Set(ids).size !== count) {
    throw new DemoError(
      `The service has ${count} ${resource}, the copy ${ids.length}, ${new Set(ids).size} of them different.`,
    );
  }
}
