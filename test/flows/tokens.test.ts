import { expect, test, vi } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceClock } from '../../src/client/service-clock.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import { takePort } from '../../src/web/listen.ts';
import { consent, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { accessTokenFrom } from '../tokens/access-token.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const SIZE = { plan: 'starter', contacts: 5, conversations: 5 };

async function start() {
  const testApp = await startTestApp();
  const browser = testApp.session();
  const company = await testApp.control.addCompany({ name: 'Longlived', ...SIZE });
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  return { ...testApp, browser, company, id };
}

/** Presses "sync now" and waits for the end of that run. */
async function syncNow({ browser, id }: Awaited<ReturnType<typeof start>>) {
  const dashboard = await browser.get(`/instances/${id}`);
  const { started_at } = (await readStatus(browser, id)).resources.contacts ?? {};
  await browser.submit(dashboard.form(`/instances/${id}/sync`));
  return waitForStatus(
    browser,
    id,
    (status) => isSynced(status) && status.resources.contacts?.started_at !== started_at,
  );
}

test('an access token that has expired is renewed once, and the sync goes on', async () => {
  const setup = await start();
  await setup.control.clock({ advance_ms: HOUR_MS + 1_000 });
  const status = await syncNow(setup);
  expect(status.token.refreshes).toBe(1);
  expect(status.token.rotations).toBe(0);
  const refreshes = (await setup.control.requests()).filter(({ path }) => path === '/oauth/token');
  expect(refreshes.length).toBe(2);
});

test('the sweep renews the refresh token in its last 24 hours, without anybody asking', async () => {
  const { app, control, browser, id, sandbox, log } = await start();
  const { token } = await readStatus(browser, id);
  await control.clock({ set: Date.parse(token.refresh_expires_at ?? '') - 12 * HOUR_MS, frozen: true });
  const upkeep = { tokens: app.tokens, time: new ServiceTime(app.clock, sandbox.authUrl, 0) };
  await rotateTokens(upkeep, log.logger, new AbortController().signal);
  const after = await readStatus(browser, id);
  expect(after.token.rotations).toBe(1);
  expect(after.status).toBe('active');
});

test('a year with the sweep running never asks for a new authorization', async () => {
  const { app, control, browser, id, sandbox, log } = await start();
  await control.clock({ frozen: true });
  const upkeep = { tokens: app.tokens, time: new ServiceTime(app.clock, sandbox.authUrl, 0) };
  for (let day = 0; day < 366; day++) {
    await control.clock({ advance_ms: DAY_MS });
    await rotateTokens(upkeep, log.logger, new AbortController().signal);
    if (day % 30 === 0) expect((await readStatus(browser, id)).status).toBe('active');
  }
  expect(await readStatus(browser, id)).toMatchObject({ status: 'active', token: { rotations: 2 } });
});

test('a refresh token that is no longer good stops the jobs, and a new authorization repairs it', async () => {
  const setup = await start();
  const { control, browser, id, company } = setup;
  await control.clock({ advance_ms: 200 * DAY_MS });
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/sync`));
  await waitForStatus(browser, id, ({ status }) => status === 'needs_reauthorization');
  const dashboard = await browser.get(`/instances/${id}`);
  expect(dashboard.body).toMatch(/authorize again/i);
  const asked = (await control.requests()).filter(({ path }) => path === '/oauth/token').length;
  const records = (await readStatus(browser, id)).resources.contacts?.stored;
  expect(records).toBe(5);

  await consent(browser, await browser.get('/install'), company);
  const repaired = await waitForStatus(browser, id, isSynced);
  expect(repaired.status).toBe('active');
  const afterwards = (await control.requests()).filter(({ path }) => path === '/oauth/token').length;
  expect(afterwards - asked).toBe(1);
});

test('many who need a token at once ask the service once, also from several processes', async () => {
  const setup = await start();
  const sibling = await setup.join();
  await setup.control.clock({ advance_ms: HOUR_MS + 1_000 });
  const now = new Date((await setup.control.state()).now).toUTCString();
  // Told twice, as one answer alone may be wrong.
  for (const { clock } of [setup.app, setup.app, sibling, sibling]) clock.observe(now);
  const before = (await setup.control.requests()).length;
  const tokens = await Promise.all(
    Array.from({ length: 50 }, (_, index) =>
      accessTokenFrom((index % 2 ? setup.app : sibling).tokens, setup.id),
    ),
  );
  expect(new Set(tokens).size).toBe(1);
  const asked = (await setup.control.requests(before)).filter(({ path }) => path === '/oauth/token');
  expect(asked.length).toBe(1);
});

test('trouble at the token route keeps the grant, is waited out by all in common, and the sync goes on', async () => {
  const setup = await start();
  const { control } = setup;
  for (const { fault, times } of [
    { fault: { status: 500 }, times: 2 },
    { fault: { drop: 'before' as const }, times: 1 },
    { fault: { status: 429, headers: { 'retry-after': '0.5' } }, times: 1 },
  ]) {
    const before = (await control.requests()).at(-1)?.n;
    const { refreshes } = (await readStatus(setup.browser, setup.id)).token;
    await control.fault({ match: { path: '/oauth/token' }, fault, times });
    await control.clock({ advance_ms: HOUR_MS + 1_000 });
    const status = await syncNow(setup);
    expect(status).toMatchObject({ status: 'active', notice: null, token: { refreshes: refreshes + 1 } });
    // Contacts and conversations want the token at the same time.
    const asked = (await control.requests(before)).filter(({ path }) => path === '/oauth/token');
    expect(asked.map((row) => row.status)).toEqual([...Array(times).fill(fault.status ?? 0), 200]);
  }
});

test('a clock that knows nothing yet learns from any answer', async () => {
  const { sandbox, control } = await start();
  await control.clock({ set: Date.UTC(2031, 0, 1), frozen: true });
  const clock = new ServiceClock();
  await new ServiceTime(clock, sandbox.authUrl).refresh();
  expect(Math.abs(clock.now() - Date.UTC(2031, 0, 1))).toBeLessThan(2_000);
});

test('a web process that asks the service for nothing keeps its clock by the service’s', async () => {
  const { join, control } = await startTestApp({ workers: false });
  const app = await join();
  const port = await takePort({ host: '127.0.0.1', port: 0, variable: 'PORT' });
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  try {
    await app.startWeb(port);
    await control.clock({ set: Date.UTC(2031, 0, 1), frozen: true });
    vi.advanceTimersByTime(60_000);
    await waitFor(() => Math.abs(app.clock.now() - Date.UTC(2031, 0, 1)) < 2_000);
  } finally {
    vi.useRealTimers();
    await port.close();
  }
});
