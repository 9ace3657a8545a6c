import { setTimeout as sleep } from 'node:timers/promises';
import type { InstanceStatus } from '../sync/status-types.ts';
import { Browser } from './browser.ts';
import type { DemoCompany } from './companies.ts';
import { DemoError, installCompany } from './install-company.ts';

const POLL_EVERY_MS = 200;

/** A rate window lasts a minute, so a sync without progress for longer is stuck. */
const STUCK_AFTER_MS = 150_000;

export interface SyncedCompany {
  company: DemoCompany;
  status: InstanceStatus;
}

/**
 * Installs a company as its administrator, waits for the first sync, and compares the copy with the service.
 *
 * @param onProgress gets each status
 * @throws DemoError when the install or the sync fails, or the copy differs
 */
export async function syncCompany(
  { appUrl, sandboxUrl }: { appUrl: string; sandboxUrl: string },
  company: DemoCompany,
  onProgress: (status: InstanceStatus) => void,
): Promise<SyncedCompany> {
  const browser = new Browser(appUrl);
  const administrator = company.teammates.find(({ is_admin }) => is_admin);
  const dashboard = await installCompany(browser, sandboxUrl, company, administrator?.id ?? '');
  const status = await waitForSync(browser, dashboard, onProgress);
  for (const [resource, count] of Object.entries(company.counts)) {
    // Of other lists, some records are private to a teammate.
    const isShared = resource === 'contacts' || resource === 'conversations';
    if (isShared && resource in status.resources) await compare(browser, dashboard, resource, count);
  }
  return { company, status };
}

async function waitForSync(
  browser: Browser,
  dashboard: string,
  onProgress: (status: InstanceStatus) => void,
): Promise<InstanceStatus> {
  let lastPages = '';
  let lastProgressAt = performance.now();
  for (;;) {
    const status: InstanceStatus = JSON.parse((await browser.open(`${dashboard}/status`)).body);
    onProgress(status);
    const lists = Object.entries(status.resources);
    const failed = lists.find(([, { state }]) => state === 'failed');
    if (failed !== undefined) throw new DemoError(`${status.name}, ${failed[0]}: ${failed[1].error}`);
    if (status.status !== 'active')
      throw new DemoError(`${status.name} is ${status.status}: ${status.error ?? status.error_kind}`);
    if (lists.every(([, { state, finished_at }]) => state === 'idle' && finished_at !== null)) return status;

    const pages = lists.map(([, list]) => list.pages).join();
    if (pages !== lastPages) lastProgressAt = performance.now();
    lastPages = pages;
    if (performance.now() - lastProgressAt > STUCK_AFTER_MS)
      throw new DemoError(`${status.name} makes no progress.`);
    await sleep(POLL_EVERY_MS);
  }
}

async function compare(browser: Browser, dashboard: string, resource: string, count: number): Promise<void> {
  const { body } = await browser.open(`${dashboard}/${resource}.ndjson`);
  const lines = body.split('\n').filter((line) => line !== '');
  const ids = new Set(lines.map((line) => JSON.parse(line).id));
  if (lines.length === count && ids.size === count) return;
  throw new DemoError(
    `The service has ${count} ${resource}. The copy has ${lines.length}, with ${ids.size} different ids.`,
  );
}
