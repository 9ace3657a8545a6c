import { afterAll, expect, test, vi } from 'vitest';
import { createCheckedSandbox } from '../sandbox/checked-sandbox.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';

// Several processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const HOUR_MS = 60 * 60_000;
const TRIED_AGAIN = 'the grant was refused to another application: it is tried again';

const { control, env, session, sandbox, config } = await startTestApp({
  workers: false,
  // What stopped is looked for in half of that time.
  env: { SYNC_INTERVAL_MINUTES: '0.1' },
});
const elsewhere = await createCheckedSandbox();
afterAll(() => elsewhere.close());

async function newApplication(): Promise<Record<string, string>> {
  const answer = await fetch(`${sandbox.origin}/_sandbox/applications`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ name: 'Staging', redirect_uris: [`${config.publicUrl}/oauth/callback`] }),
  });
  const { client_id, client_secret } = (await answer.json()) as Record<string, string>;
  return { CLIENT_ID: client_id ?? '', CLIENT_SECRET: client_secret ?? '' };
}

async function startWorker(wrong: Record<string, string> = {}): Promise<EntryProcess> {
  const worker = spawnEntry('src/worker.ts', { ...env, ...wrong, LOG_LEVEL: 'info' });
  await worker.waitForOutput(/the workers run/);
  return worker;
}

/** How often a worker has said that it takes an instance's end back. */
function triedAgain(worker: EntryProcess, instanceId: string): number {
  return worker
    .output()
    .split('\n')
    .filter((line) => line.includes(TRIED_AGAIN) && line.includes(`"instanceId":"${instanceId}"`)).length;
}

/** What the token route has answered for a company behind a row of the journal. */
async function tokenRequests(company: SandboxCompany, after: number): Promise<number[]> {
  const rows = await control.requests(after);
  return rows
    .filter(({ path, company_id }) => path === '/oauth/token' && company_id === company.id)
    .map(({ status }) => status);
}

const lastRow = async () => (await control.requests()).at(-1)?.n ?? 0;
const isOver = ({ status }: { status: string }) => status === 'needs_reauthorization';

test.each<[string, () => Promise<Record<string, string>>]>([
  ['the credentials of another application', newApplication],
  ['the SERVICE_AUTH_URL of another environment', async () => ({ SERVICE_AUTH_URL: elsewhere.authUrl })],
])(
  'grants that a worker with %s has ended go on as soon as one has the right values; one that is over stays so',
  async (_what, wrongValues) => {
    const companies = [];
    for (const name of ['Acme', 'Other']) {
      const company = await control.addCompany({ name, plan: 'starter', contacts: 5, conversations: 5 });
      const browser = session();
      companies.push({ browser, company, id: await install(browser, company) });
    }
    await control.clock({ advance_ms: HOUR_MS + 1_000 });
    const values = await wrongValues();
    const wrong = await startWorker(values);
    for (const { browser, id } of companies) {
      const { notice } = await waitForStatus(browser, id, isOver);
      const { CLIENT_ID, SERVICE_AUTH_URL } = { ...env, ...values };
      expect(notice).toContain(`asked with CLIENT_ID ${CLIENT_ID} at ${SERVICE_AUTH_URL}.)`);
      expect(notice).not.toContain(values.CLIENT_SECRET ?? env.CLIENT_SECRET);
    }
    await wrong.stop();

    const [mended, over] = companies;
    if (mended === undefined || over === undefined) expect.fail();
    await control.fault({
      match: { path: '/oauth/token', company_id: over.company.id },
      fault: { status: 400, body: { error: 'invalid_grant' } },
      times: 100,
    });
    const before = await lastRow();
    const right = await startWorker();
    for (const { id } of companies) expect(triedAgain(right, id)).toBe(1);
    const synced = await waitForStatus(mended.browser, mended.id, isSynced);
    expect(synced).toMatchObject({ status: 'active', notice: null });
    const ended = await waitForStatus(over.browser, over.id, isOver);
    expect(ended.notice).toContain(`asked with CLIENT_ID ${env.CLIENT_ID} at ${env.SERVICE_AUTH_URL}.)`);
    expect(await tokenRequests(mended.company, before)).toEqual([200]);
    expect(await tokenRequests(over.company, before)).toEqual([400]);
    await right.stop();

    const restarted = await startWorker();
    expect(triedAgain(restarted, over.id)).toBe(0);
    const { status, notice } = await readStatus(over.browser, over.id);
    expect({ status, notice }).toEqual({ status: ended.status, notice: ended.notice });
    expect(await tokenRequests(over.company, before)).toEqual([400]);
    await restarted.stop();
    await control.clearFaults();
  },
);
