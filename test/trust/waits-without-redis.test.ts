import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { install, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const testApp = await startTestApp();
const { app, control } = testApp;
const redis = new Redis(testApp.redisUrl);
afterAll(() => redis.disconnect());

test('a wait that the service asked for is kept when Redis loses everything; an administrator may end it', async () => {
  const refused = [429, 503];
  const cases = await Promise.all(
    refused.map(async (status) => {
      const company = await control.addCompany({
        name: `Refuses with ${status}`,
        plan: 'starter',
        contacts: 10,
        conversations: 1,
      });
      const fault = { status, headers: { 'retry-after': '600' } };
      await control.fault({ match: { path: '/contacts', company_id: company.id }, fault, times: 1_000 });
      const browser = testApp.session();
      const id = await install(browser, company);
      const asked = async () =>
        (await control.requests()).filter(
          ({ company_id, path }) => company_id === company.id && path === '/contacts',
        ).length;
      const { resources } = await waitForStatus(browser, id, (seen) => {
        const { contacts, conversations } = seen.resources;
        return typeof contacts?.waiting_until === 'string' && conversations?.state !== 'running';
      });
      return { id, asked, before: await asked(), until: resources.contacts?.waiting_until };
    }),
  );
  const unfinished = async () => {
    const { delayed, waiting, active } = await app.queues.syncCounts();
    return { delayed, isOther: waiting + active > 0 };
  };
  const { delayed } = await waitFor(async () => {
    const counts = await unfinished();
    return counts.isOther ? undefined : counts;
  });
  expect(delayed).toBeGreaterThanOrEqual(refused.length);

  await redis.flushall();
  await waitFor(async () => (await unfinished()).delayed === delayed, {
    what: 'the jobs',
  });
  for (const { id, asked, before, until } of cases) {
    expect(await asked()).toBe(before);
    expect((await app.control.status(id))?.resources.contacts?.waiting_until).toBe(until);
    await app.control.syncNow(id);
    await waitFor(async () => (await asked()) === before + 1, { what: 'the administrator’s try' });
  }
});
