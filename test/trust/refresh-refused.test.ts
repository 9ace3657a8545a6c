import { afterAll, expect, test } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { RunStore } from '../../src/store/runs.ts';
import { RESOURCES } from '../../src/sync/resources.ts';
import { startDueRuns } from '../../src/sync/schedule.ts';
import { takePort } from '../../src/web/listen.ts';
import type { HttpSession } from '../support/http-session.ts';
import { consent, downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const MINUTE_MS = 60_000;
const STEP_MINUTES = 5;

const { app, join, control, session, config, sandbox, log } = await startTestApp();
// Another worker on the same store and Redis.
const sibling = await join();
const siblings = sibling.startWorkers();
afterAll(() => siblings.close());
const db = await openDatabase(config.databaseUrl);
afterAll(() => db.destroy());
const schedule = { runs: new RunStore(db), resources: RESOURCES, intervalMs: config.syncIntervalMs };

async function newCompany() {
  const company = await control.addCompany({
    name: 'Acme',
    plan: 'starter',
    contacts: 250,
    conversations: 5,
  });
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  return { company, browser, id };
}

async function press(browser: HttpSession, id: string, button: string): Promise<void> {
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/${button}`));
}

/** What was asked on a company's behalf behind a row of the journal: method, path and status. */
async function requestsOf(company: SandboxCompany, after: number): Promise<string[]> {
  const rows = (await control.requests(after)).filter(({ company_id }) => company_id === company.id);
  return rows.map(({ path, status }) => `${path} ${status}`);
}

async function lastRow(): Promise<number> {
  return (await control.requests()).at(-1)?.n ?? 0;
}

/** What all processes have counted together. */
async function rejectedGrants(): Promise<number> {
  let sum = 0;
  for (const one of [app, sibling]) {
    const health = await takePort({ host: '127.0.0.1', port: 0, variable: 'WORKER_PORT' });
    await one.startHealth(health);
    const text = await (await fetch(`http://127.0.0.1:${health.port}/metrics`)).text();
    sum += Number(/^token_refreshes_total\{outcome="rejected"\} (\d+)/m.exec(text)?.[1] ?? 0);
    await health.close();
  }
  return sum;
}

test('a grant that is over: jobs stop, it is told once, nothing is deleted, one token request in the hour after, and a new authorization repairs it', async () => {
  const { company, browser, id } = await newCompany();
  await control.clock({ frozen: true });
  const before = await lastRow();
  // An administrator takes the authorization back in the middle of a sync.
  const match = { path: '/contacts', company_id: company.id };
  await control.fault({ match, fault: { revoke: 'grant' }, times: 1 });
  await press(browser, id, 'sync');
  const ended = await waitForStatus(browser, id, ({ status }) => status === 'needs_reauthorization');
  expect(ended.notice).toMatch(/does not accept the refresh token any more/);
  const jobs = () => app.queues.sync.getJobCountByTypes('waiting', 'prioritized', 'active', 'delayed');
  await waitFor(async () => (await jobs()) === 0);
  const told = log.lines.filter(
    ({ msg, instanceId }) => msg === 'the instance needs a new authorization' && instanceId === id,
  );
  expect(told).toHaveLength(1);

  const upkeep = { time: new ServiceTime(app.clock, sandbox.authUrl, 0) };
  const begunAt = Date.now();
  for (let minute = 0; minute <= 60; minute += STEP_MINUTES) {
    await control.clock({ advance_ms: STEP_MINUTES * MINUTE_MS });
    for (const { tokens } of [app, sibling]) {
      await rotateTokens({ tokens, ...upkeep }, log.logger, new AbortController().signal);
      await expect(tokens.rotate(id)).rejects.toMatchObject({ remedy: 'reauthorize' });
    }
    const now = () => begunAt + minute * MINUTE_MS;
    expect(await startDueRuns({ ...schedule, now })).toEqual([]);
  }
  const asked = await requestsOf(company, before);
  expect(asked.filter((line) => line.startsWith('/oauth/token'))).toEqual(['/oauth/token 400']);
  expect(asked.length).toBeLessThan(10);
  expect(await rejectedGrants()).toBe(1);

  const status = await readStatus(browser, id);
  expect(status).toMatchObject({ status: 'needs_reauthorization', notice: ended.notice });
  expect((await downloadIds(browser, id, 'contacts')).length).toBe(250);
  const { body } = await browser.get(`/instances/${id}`);
  expect(body.split('does not accept the refresh token any more').length).toBe(2);
  expect(body).toContain('Authorize again');

  await control.clock({ frozen: false });
  await consent(browser, await browser.get('/install'), company);
  const repaired = await waitForStatus(browser, id, isSynced);
  expect(repaired).toMatchObject({ status: 'active', notice: null });
});

test('tokens that the service rejects although they should be good: one refresh, one more request, then the reason is shown', async () => {
  const { company, browser, id } = await newCompany();
  const before = await lastRow();
  const match = { path: '/contacts', company_id: company.id };
  await control.fault({ match, fault: { status: 401 }, times: 1_000 });
  await press(browser, id, 'sync');
  const shown = await waitForStatus(browser, id, ({ resources }) => Boolean(resources.contacts?.error));
  expect(shown).toMatchObject({ status: 'active', notice: null });
  expect(shown.resources.contacts?.error).toMatch(/rejects access tokens that should still be good \(401\)/);
  expect((await browser.get(`/instances/${id}`)).body).toMatch(
    /rejects access tokens that should still be good/,
  );
  const first = (await requestsOf(company, before)).filter((line) => !line.startsWith('/conversations'));
  expect(first.slice(0, 3)).toEqual(['/contacts 401', '/oauth/token 200', '/contacts 401']);

  // It is tried again by itself, after pauses; what was renewed in vain is not renewed each time.
  await waitFor(
    async () => (await requestsOf(company, before)).filter((line) => line === '/contacts 401').length >= 4,
  );
  const asked = await requestsOf(company, before);
  expect(asked.filter((line) => line.startsWith('/oauth/token')).length).toBe(1);
  expect((await readStatus(browser, id)).resources.conversations).toMatchObject({
    state: 'idle',
    error: null,
  });

  await control.clearFaults();
  const repaired = await waitForStatus(browser, id, isSynced);
  expect(repaired.resources.contacts).toMatchObject({ records: 250, error: null });
});

/** The dashboard of an instance, once it says that a new authorization may help. */
function offered(browser: HttpSession, id: string): Promise<string> {
  return waitFor(async () => {
    const { body } = await browser.get(`/instances/${id}`);
    return body.includes('If it stays like this for hours, authorize the app again') && body;
  });
}

test('a token route that refuses with a challenge for a token: a new authorization may help, and does', async () => {
  const { company, browser, id } = await newCompany();
  const error = { status: 401, title: 'Unauthorized', message: 'The refresh token was revoked.' };
  await control.fault({
    match: { path: '/oauth/token' },
    fault: {
      status: 401,
      headers: { 'www-authenticate': 'Bearer error="invalid_token", error_description="It was revoked"' },
      body: { _error: error },
    },
    times: 1_000,
  });
  await control.clock({ advance_ms: 2 * 60 * MINUTE_MS });
  await press(browser, id, 'sync');
  const body = await offered(browser, id);
  expect(body).toMatch(/data-show="action.authorize">Authorize again/);
  expect(body).not.toContain('does not accept the credentials of the app itself');
  expect(body).not.toMatch(/nothing (?:for you )?to do/i);

  await control.clearFaults();
  await consent(browser, await browser.get('/install'), company);
  expect(await waitForStatus(browser, id, isSynced)).toMatchObject({ status: 'active', notice: null });
});

test('a token route that refuses in the form of the service’s other errors: a new authorization may help, and is asked for when the six months are over', async () => {
  const { company, browser, id } = await newCompany();
  const error = { status: 401, title: 'Unauthorized', message: 'The refresh token has expired.' };
  await control.fault({
    match: { path: '/oauth/token' },
    fault: { status: 401, body: { _error: error } },
    times: 1_000,
  });
  await control.clock({ advance_ms: 2 * 60 * MINUTE_MS });
  await press(browser, id, 'sync');
  const { status } = await waitForStatus(browser, id, ({ resources }) => Boolean(resources.contacts?.error));
  expect(status).toBe('active');
  const body = await offered(browser, id);
  expect(body).toMatch(/data-show="action.authorize">Authorize again/);
  expect(body).not.toContain('There is nothing to do');

  await control.clock({ advance_ms: 200 * 24 * 60 * MINUTE_MS });
  const time = new ServiceTime(app.clock, sandbox.authUrl, 0);
  const ended = await waitFor(async () => {
    for (const { tokens } of [app, sibling]) {
      await rotateTokens({ tokens, time }, log.logger, new AbortController().signal);
    }
    const read = await readStatus(browser, id);
    return read.status === 'needs_reauthorization' ? read : undefined;
  });
  expect(ended.notice).toMatch(/six months are over.*Authorize the app again/);
  expect(ended.resources.contacts).toMatchObject({ deleted: 0 });
  const told = log.lines.filter(
    ({ msg, instanceId }) => msg === 'the instance needs a new authorization' && instanceId === id,
  );
  expect(told).toHaveLength(1);

  await control.clearFaults();
  await consent(browser, await browser.get('/install'), company);
  expect(await waitForStatus(browser, id, isSynced)).toMatchObject({ status: 'active', notice: null });
});
