import { afterAll, expect, test, vi } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import type { Fault } from '../../src/sandbox/faults/fault.ts';
import type { HttpSession } from '../support/http-session.ts';
import { consent, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import type { DyingStep } from './refresh-dying.ts';

// A process for each case starts: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 90_000, hookTimeout: 90_000 });

const HOUR_MS = 60 * 60_000;

interface Case {
  step: DyingStep;
  /** What becomes of the answer to the process that dies. */
  fault?: Fault;
  /** The statuses that the token route answers to whoever comes after it. */
  asked: number[];
}

// While nothing says that a refresh token ends when there is a new one, it goes on with the old one.
const RECOVERING: Case[] = [
  { step: 'asking', asked: [200] },
  { step: 'answer lost', fault: { drop: 'after' }, asked: [200] },
  { step: 'answered', asked: [200] },
  { step: 'written', asked: [200] },
  { step: 'committed', asked: [] },
  { step: 'released', asked: [] },
];

// A service may end it all the same: then nobody has a good one any more.
const LOST: Case[] = [
  { step: 'answer lost', fault: { drop: 'after', revoke: 'grant' }, asked: [400] },
  { step: 'answered', fault: { revoke: 'grant' }, asked: [400] },
  { step: 'written', fault: { revoke: 'grant' }, asked: [400] },
];

const { app, control, session, sandbox, env, log } = await startTestApp({ workers: false });

interface Victim extends Case {
  company: SandboxCompany;
  browser: HttpSession;
  id: string;
  /** The journal's last row when its process had died. */
  diedAt: number;
}

async function tokenRequests(company: SandboxCompany, after: number): Promise<number[]> {
  const rows = await control.requests(after);
  return rows
    .filter(({ path, company_id }) => path === '/oauth/token' && company_id === company.id)
    .map(({ status }) => status);
}

const installed = await Promise.all(
  [...RECOVERING, ...LOST].map(async (one) => {
    const company = await control.addCompany({
      name: one.step,
      plan: 'starter',
      contacts: 3,
      conversations: 3,
    });
    const browser = session();
    return { ...one, company, browser, id: await install(browser, company) };
  }),
);
const [first] = installed;
const { token } = await readStatus(first?.browser ?? session(), first?.id ?? '');
// Every refresh brings a new refresh token from here on.
await control.clock({ set: Date.parse(token.refresh_expires_at ?? '') - 12 * HOUR_MS });
const victims: Victim[] = await Promise.all(
  installed.map(async (one) => {
    const match = { path: '/oauth/token', company_id: one.company.id };
    if (one.fault !== undefined) await control.fault({ match, fault: one.fault, times: 1 });
    const dying = spawnEntry('test/trust/refresh-dying.ts', env, { args: [one.id, one.step] });
    expect([await dying.exited, dying.output()]).toEqual([{ code: null, signal: 'SIGKILL' }, '']);
    return { ...one, diedAt: (await control.requests()).at(-1)?.n ?? 0 };
  }),
);
// From here on others come for the tokens: the sweep, and the syncs that an administrator asks for.
for (const { browser, id } of victims) {
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/sync`));
}
const workers = app.startWorkers();
afterAll(() => workers.close());

test.each(RECOVERING.map(({ step }) => step))(
  'a process that is killed in a refresh (%s) costs no grant: the sync goes on, with a new refresh token',
  async (step) => {
    const { browser, id, company, asked, diedAt } = victims.find((one) => one.step === step) ?? expect.fail();
    const status = await waitForStatus(browser, id, isSynced);
    expect(status).toMatchObject({ status: 'active', notice: null, token: { rotations: 1, refreshes: 1 } });
    expect(await tokenRequests(company, diedAt)).toEqual(asked);
  },
);

test.each(LOST.map(({ step }) => step))(
  'a new refresh token that is lost with its process (%s), when the old one has ended: a new authorization is asked for, once and plainly, and repairs it',
  async (step) => {
    const { browser, id, company, asked, diedAt } =
      victims.findLast((one) => one.step === step) ?? expect.fail();
    const status = await waitForStatus(browser, id, (now) => now.status === 'needs_reauthorization');
    expect(status.notice).toMatch(/does not accept the refresh token any more\. Authorize the app again/);
    const dashboard = await browser.get(`/instances/${id}`);
    expect(dashboard.body).toContain('Authorize again');
    const upkeep = { tokens: app.tokens, time: new ServiceTime(app.clock, sandbox.authUrl, 0) };
    await rotateTokens(upkeep, log.logger, new AbortController().signal);
    expect(await tokenRequests(company, diedAt)).toEqual(asked);

    await consent(browser, await browser.get('/install'), company);
    expect((await waitForStatus(browser, id, isSynced)).status).toBe('active');
  },
);
