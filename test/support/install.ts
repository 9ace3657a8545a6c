import type { InstanceStatus } from '../../src/sync/status-types.ts';
import type { SandboxCompany } from '../acceptance/support/sandbox-control.ts';
import type { HttpPage, HttpSession } from './http-session.ts';
import { PATIENCE_MS } from './patience.ts';
import { waitFor } from './wait-for.ts';

/** Answers the sandbox's consent page for a company, as its administrator unless somebody else is named. */
export async function consent(
  session: HttpSession,
  consentPage: HttpPage,
  company: SandboxCompany,
  answer: { decision?: 'approve' | 'deny'; teammateId?: string; follow?: boolean } = {},
): Promise<HttpPage> {
  const teammateId = answer.teammateId ?? company.teammates.find(({ is_admin }) => is_admin)?.id ?? '';
  const { decision = 'approve', follow = true } = answer;
  return session.post(consentPage.url, { teammate_id: teammateId, decision }, { follow });
}

/** Installs a company as an administrator does, from the button to the dashboard; answers the instance's id. */
export async function install(session: HttpSession, company: SandboxCompany): Promise<string> {
  const dashboard = await consent(session, await session.get('/install'), company);
  const id = /^\/instances\/(\w+)$/.exec(dashboard.url.pathname)?.[1];
  if (id === undefined) throw new Error(`not installed: ${dashboard.status} at ${dashboard.url.pathname}`);
  return id;
}

/** The instance's status, as its session sees it. */
export async function readStatus(session: HttpSession, id: string): Promise<InstanceStatus> {
  return (await session.get(`/instances/${id}/status`)).json() as InstanceStatus;
}

/** Waits until the status meets a condition. */
export function waitForStatus(
  session: HttpSession,
  id: string,
  condition: (status: InstanceStatus) => boolean,
  timeoutMs = PATIENCE_MS,
): Promise<InstanceStatus> {
  let last: InstanceStatus | undefined;
  return waitFor(
    async () => {
      last = await readStatus(session, id);
      return condition(last) ? last : undefined;
    },
    { timeoutMs, intervalMs: 50, what: `the status; last ${JSON.stringify(last)}` },
  );
}

/** Whether every resource has come to the end of its run. */
export function isSynced(status: InstanceStatus): boolean {
  return Object.values(status.resources).every(
    ({ state, finished_at }) => state === 'idle' && finished_at !== null,
  );
}

/** The ids of all documents of a resource, by its download. */
export async function downloadIds(session: HttpSession, id: string, resource: string): Promise<string[]> {
  const { body } = await session.get(`/instances/${id}/${resource}.ndjson`);
  return body
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => (JSON.parse(line) as { id: string }).id);
}

/** How many requests each rate window saw at most: a window begins with its first request. */
export function largestWindow(times: readonly number[], windowMs: number): number {
  let start = Number.NEGATIVE_INFINITY;
  let count = 0;
  let largest = 0;
  for (const at of times) {
    if (at - start >= windowMs) {
      start = at;
      count = 0;
    }
    count++;
    largest = Math.max(largest, count);
  }
  return largest;
}
