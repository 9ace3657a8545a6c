import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { UPKEEP } from '../../jobs/schedules.ts';
import type { Workers } from '../../jobs/workers.ts';
import type { InstanceStatus } from '../../src/sync/status-types.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const { app, control, join, session, redisUrl } = await startTestApp({ workers: false });
const redis = new Redis(redisUrl);
let workers: Workers | undefined;
afterAll(async () => {
  await workers?.close();
  redis.disconnect();
});

/** Ends the workers, and starts others, as a process has them that was started anew. */
async function restart(): Promise<void> {
  await workers?.close();
  workers = (await join()).startWorkers();
}

/** Has the workers look for runs to start, and waits until they have. */
async function look(): Promise<void> {
  const job = await app.queues.upkeep.add(UPKEEP.startRuns, {});
  await waitFor(async () => ['completed', 'unknown'].includes(await job.getState()));
}

async function pagesRead(): Promise<number> {
  return (await control.requests()).filter(({ path, status }) => path === '/contacts' && status === 200)
    .length;
}

async function tokenRequests(): Promise<number> {
  return (await control.requests()).filter(({ path }) => path === '/oauth/token').length;
}

const hasEnded = ({ resources }: InstanceStatus) =>
  Object.values(resources).every(({ state }) => state === 'failed' || state === 'idle');

test('a secret that the service refuses costs no list its place: it goes on with the right one', async () => {
  await restart();
  await look();
  const size = { contacts: 450, conversations: 450 };
  const company = await control.addCompany({ name: 'Acme', plan: 'starter', ...size });
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const [pages, tokens] = [await pagesRead(), await tokenRequests()];

  await control.fault({ match: { path: '/contacts', nth: 2 }, fault: { revoke: 'access_token' }, times: 1 });
  await control.fault({
    match: { path: '/oauth/token' },
    fault: { status: 401, body: { error: 'invalid_client' } },
    times: 1_000,
  });
  await browser.submit((await browser.get(`/instances/${id}`)).form(`/instances/${id}/sync`));
  const failed = await waitForStatus(
    browser,
    id,
    (status) => hasEnded(status) && status.resources.contacts?.state === 'failed',
  );
  expect(failed.status).toBe('active');
  expect(failed.resources.contacts).toMatchObject({
    pages: 2,
    error: expect.stringMatching(/does not accept CLIENT_ID and CLIENT_SECRET/),
  });
  expect(await tokenRequests()).toBe(tokens + 1);
  const { body } = await browser.get(`/instances/${id}`);
  expect(body).toMatch(/people who run the app have to put them right.*there is nothing for you to do/);

  await control.clearFaults();
  await restart();
  const synced = await waitForStatus(browser, id, isSynced);
  expect(synced.resources.contacts).toMatchObject({ error: null, pages: 5, records: 450, deleted: 0 });
  expect(synced.resources.contacts?.started_at).toBe(failed.resources.contacts?.started_at);
  expect(await tokenRequests()).toBe(tokens + 2);
  expect(await pagesRead()).toBe(pages + 5);
});
