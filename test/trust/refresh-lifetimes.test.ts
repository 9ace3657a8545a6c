import { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { rotateTokens } from '../../jobs/rotate-tokens.ts';
import { ServiceTime } from '../../src/client/service-time.ts';
import type { HttpSession } from '../support/http-session.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import type { SandboxCompany } from '../support/sandbox-control.ts';
import { startTestApp } from '../support/test-app.ts';

const SECOND_MS = 1_000;
const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;

const { app, control, session, sandbox, log, redisUrl } = await startTestApp();
const time = new ServiceTime(app.clock, sandbox.authUrl, 0);

interface Installed {
  company: SandboxCompany;
  browser: HttpSession;
  id: string;
}

async function newCompany(): Promise<Installed> {
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', contacts: 3, conversations: 3 });
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  return { company, browser, id };
}

async function press({ browser, id }: Installed, button: string): Promise<void> {
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/${button}`));
}

async function syncNow(installed: Installed): Promise<void> {
  const { browser, id } = installed;
  const before = (await readStatus(browser, id)).resources.contacts?.started_at;
  await press(installed, 'sync');
  await waitForStatus(browser, id, (now) => isSynced(now) && now.resources.contacts?.started_at !== before);
}

function sweep(): Promise<void> {
  return rotateTokens({ tokens: app.tokens, time }, log.logger, new AbortController().signal);
}

/** What the token route and the API answered on a company's behalf while something was done. */
async function during({ company }: Installed, work: () => Promise<void>) {
  const before = (await control.requests()).at(-1)?.n;
  await work();
  const rows = (await control.requests(before)).filter(({ company_id }) => company_id === company.id);
  return {
    tokenRoute: rows.filter(({ path }) => path === '/oauth/token').map(({ status }) => status),
    rejected: rows.filter(({ status }) => status === 401).length,
  };
}

test.each([
  ['half a minute before it is renewed', 57.5 * MINUTE_MS, 0],
  ['a second after it is renewed', 58 * MINUTE_MS + SECOND_MS, 1],
  ['a second before its end', HOUR_MS - SECOND_MS, 1],
  ['at its end', HOUR_MS, 1],
  ['a second after its end', HOUR_MS + SECOND_MS, 1],
])(
  'an access token %s: as many refreshes as needed, and no request with one that has ended',
  async (_when, age, refreshes) => {
    const installed = await newCompany();
    await control.clock({ frozen: true });
    await app.tokens.rotate(installed.id);
    await control.clock({ advance_ms: age });
    await time.refresh();
    expect(await during(installed, () => syncNow(installed))).toEqual({
      tokenRoute: Array(refreshes).fill(200),
      rejected: 0,
    });
    expect((await during(installed, () => syncNow(installed))).tokenRoute).toEqual([]);
    await control.clock({ frozen: false });
  },
);

test('an access token a second after its end, when nobody has told the app the time: one refresh all the same', async () => {
  const installed = await newCompany();
  await control.clock({ frozen: true });
  await app.tokens.rotate(installed.id);
  await control.clock({ advance_ms: HOUR_MS + SECOND_MS });
  const { tokenRoute, rejected } = await during(installed, () => syncNow(installed));
  expect(tokenRoute).toEqual([200]);
  // Contacts and conversations; none of them twice.
  expect(rejected).toBeLessThanOrEqual(2);
  await control.clock({ frozen: false });
});

test('an access token that pages came with, and that ends before its time, is renewed; the next one may be soon, too', async () => {
  const installed = await newCompany();
  const { company, id } = installed;
  const redis = new Redis(redisUrl);
  // As after many tokens that were of no use at all: the next pause would be an hour.
  await redis.set(`tokens:{${id}}:rejection:failures`, 10);
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 401 },
    times: 1,
  });
  expect(await during(installed, () => syncNow(installed))).toEqual({ tokenRoute: [200], rejected: 1 });
  const pauseMs = await redis.pttl(`tokens:{${id}}:rejection:pause`);
  redis.disconnect();
  expect(pauseMs).toBeGreaterThan(0);
  expect(pauseMs).toBeLessThanOrEqual(MINUTE_MS);
});

test.each([
  ['a second before its last 24 hours', -24 * HOUR_MS - SECOND_MS, 0],
  ['a second into its last 24 hours', -24 * HOUR_MS + SECOND_MS, 1],
  ['a second before its end', -SECOND_MS, 1],
])(
  'a refresh token %s: the sweep renews what can be renewed, and asks once',
  async (_when, fromEnd, rotations) => {
    const installed = await newCompany();
    const { browser, id } = installed;
    const { token } = await readStatus(browser, id);
    await control.clock({ set: Date.parse(token.refresh_expires_at ?? '') + fromEnd, frozen: true });
    const asked = await during(installed, async () => {
      await sweep();
      await sweep();
    });
    expect(asked.tokenRoute).toEqual([200]);
    expect(await readStatus(browser, id)).toMatchObject({ status: 'active', token: { rotations } });

    // What could not be renewed yet is asked for again an hour later, and what was, is not.
    await control.clock({ advance_ms: HOUR_MS + MINUTE_MS });
    const later = await during(installed, sweep);
    expect(later.tokenRoute).toEqual(rotations === 0 ? [200] : []);
    expect(await readStatus(browser, id)).toMatchObject({ status: 'active', token: { rotations: 1 } });
    await syncNow(installed);
    await control.clock({ frozen: false });
  },
);

test('a refresh token a second after its end: asked for once, then a new authorization is wanted', async () => {
  const installed = await newCompany();
  const { browser, id } = installed;
  const { token } = await readStatus(browser, id);
  await control.clock({ set: Date.parse(token.refresh_expires_at ?? '') + SECOND_MS, frozen: true });
  const asked = await during(installed, async () => {
    await sweep();
    await sweep();
  });
  expect(asked.tokenRoute).toEqual([400]);
  expect((await readStatus(browser, id)).status).toBe('needs_reauthorization');
  await control.clock({ frozen: false });
  expect(await install(browser, installed.company)).toBe(id);
  await waitForStatus(browser, id, isSynced);
});

test.each([10, -10])(
  'a service whose clock is %d minutes from ours, and then as far on the other side',
  async (minutes) => {
    await control.clock({ set: Date.now() + minutes * MINUTE_MS });
    const installed = await newCompany();
    const { browser, id } = installed;
    const { token } = await readStatus(browser, id);
    const lifetime = Date.parse(token.access_expires_at ?? '') - (await control.state()).now;
    expect(lifetime).toBeLessThanOrEqual(HOUR_MS);
    expect((await during(installed, () => syncNow(installed))).tokenRoute).toEqual([]);

    // Ours is set: the service's time seems to jump.
    await control.clock({ set: Date.now() - minutes * MINUTE_MS });
    const jumped = await during(installed, async () => {
      for (let sync = 0; sync < 3; sync++) await syncNow(installed);
    });
    expect(jumped).toEqual({ tokenRoute: [], rejected: 0 });

    await control.clock({ set: Date.parse(token.refresh_expires_at ?? '') - 12 * HOUR_MS });
    expect((await during(installed, sweep)).tokenRoute).toEqual([200]);
    expect(await readStatus(browser, id)).toMatchObject({ status: 'active', token: { rotations: 1 } });
  },
);
