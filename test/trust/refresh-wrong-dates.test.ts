import { afterEach, expect, test } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';

const HOUR_MS = 60 * 60_000;
const DAY_MS = 24 * HOUR_MS;
const PAGES = 8;

const { app, control, env, session, sandbox, log } = await startTestApp();

afterEach(async () => {
  await control.clearFaults();
});

/** Answers of a route tell a time that is so far from the service's. */
async function tellWrongly(path: string, byMs: number, times = 1_000): Promise<void> {
  const date = new Date((await control.state()).now + byMs).toUTCString();
  await control.fault({ match: { path }, fault: { headers: { date } }, times });
}

async function newCompany(contacts: number) {
  const company = await control.addCompany({ name: 'Acme', plan: 'enterprise', contacts, conversations: 1 });
  return { company, browser: session() };
}

async function figure(name: string): Promise<number> {
  const text = await (await fetch(`${env.PUBLIC_URL}/metrics`)).text();
  return Number(new RegExp(`^${name} (.+)$`, 'm').exec(text)?.[1]);
}

test.each([
  ['58.5 minutes ahead of', 58.5 * 60_000],
  ['two hours ahead of', 2 * HOUR_MS],
  ['two hours behind', -2 * HOUR_MS],
  ['thousands of years ahead of', Date.UTC(9999, 0) - Date.now()],
])('an API whose clock is %s that of the token route: no refresh for it', async (_where, byMs) => {
  const { company, browser } = await newCompany(PAGES * 100);
  for (const path of ['/contacts', '/conversations']) await tellWrongly(path, byMs);
  const id = await install(browser, company);
  const { resources, token } = await waitForStatus(browser, id, isSynced);
  expect(resources.contacts?.pages).toBeGreaterThanOrEqual(PAGES);
  expect(token.refreshes).toBe(0);
  const rows = (await control.requests()).filter(({ company_id }) => company_id === company.id);
  expect(rows.filter(({ path }) => path === '/oauth/token').length).toBe(1);
});

test.each([2, 20, -2, -20])(
  'one answer of the token route that is %d hours from the others, at an install or a refresh, changes nothing',
  async (hours) => {
    const time = new ServiceTime(app.clock, sandbox.authUrl, 0);
    const sweep = () => rotateTokens({ tokens: app.tokens, time }, log.logger, new AbortController().signal);
    for (const at of ['install', 'refresh']) {
      const { company, browser } = await newCompany(1);
      if (at === 'install') await tellWrongly('/oauth/token', hours * HOUR_MS, 1);
      const id = await install(browser, company);
      await waitForStatus(browser, id, isSynced);
      if (at === 'refresh') {
        await tellWrongly('/oauth/token', hours * HOUR_MS, 1);
        await app.tokens.rotate(id);
      }
      const before = await readStatus(browser, id);
      const { n } = (await control.requests()).at(-1) ?? {};
      const { now } = await control.state();
      const lifeMs = Date.parse(before.token.access_expires_at ?? '') - now;
      expect(lifeMs).toBeGreaterThan(HOUR_MS - 60_000);
      expect(lifeMs).toBeLessThanOrEqual(HOUR_MS + 1_000);

      // A token that has ended is renewed before it is used, and nothing is renewed before that.
      await sweep();
      await control.clock({ advance_ms: HOUR_MS + 5 * 60_000 });
      await time.refresh();
      await app.control.syncNow(id);
      const started = before.resources.contacts?.started_at;
      await waitForStatus(
        browser,
        id,
        (status) => isSynced(status) && status.resources.contacts?.started_at !== started,
      );
      // From here on nothing but the sweep asks for tokens.
      await app.control.pause(id);
      await control.clock({ frozen: true });
      for (let hour = 0; hour < 30; hour++) {
        await control.clock({ advance_ms: HOUR_MS + 60_000 });
        await sweep();
      }
      await control.clock({ frozen: false });
      const rows = (await control.requests(n)).filter(({ company_id }) => company_id === company.id);
      expect(rows.filter(({ path }) => path === '/oauth/token').map(({ status }) => status)).toEqual([200]);
      expect(rows.filter(({ status }) => status === 401)).toEqual([]);
    }
  },
);

test('an install that was told one wrong time, by the API or the token route: the refresh token is renewed in time', async () => {
  const installed = [];
  for (const path of ['/me', '/oauth/token']) {
    for (const byMs of [400 * DAY_MS, -400 * DAY_MS]) {
      const { company, browser } = await newCompany(1);
      await tellWrongly(path, byMs, 1);
      const id = await install(browser, company);
      await waitForStatus(browser, id, isSynced);
      // From here on nothing but the sweep asks for tokens.
      await app.control.pause(id);
      installed.push({ what: `${path} ${byMs}`, browser, id });
    }
  }
  await control.clock({ frozen: true });
  const upkeep = { tokens: app.tokens, time: new ServiceTime(app.clock, sandbox.authUrl, 0) };
  for (const days of [100, 78, ...Array(12).fill(0.5)]) {
    await control.clock({ advance_ms: days * DAY_MS });
    await rotateTokens(upkeep, log.logger, new AbortController().signal);
  }
  for (const { what, browser, id } of installed) {
    const { status, token } = await readStatus(browser, id);
    expect({ what, status, rotations: token.rotations }).toEqual({ what, status: 'paused', rotations: 1 });
  }
  expect(await figure('refresh_tokens_overdue')).toBe(0);
});
