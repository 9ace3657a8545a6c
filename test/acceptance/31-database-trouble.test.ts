import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { makeTroubledDatabase } from './support/database-trouble.ts';
import { expectWhole } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const BACK_WITHIN_MS = 60_000;

describe('31. A locked database or a full disk is told as that, and the sync goes on by itself afterwards.', async () => {
  const database = await makeTroubledDatabase();
  const world = await createWorld({ sandbox: { windowMs: 2_000 }, env: database.env });
  const { control } = world;
  const { web, worker } = await world.start();

  it.each([
    {
      what: 'a database that is kept locked',
      reason: /lock/i,
      begin: () => database.lock(world.databaseUrl),
    },
    { ...database.lost, begin: () => database.lose([web.pid, worker.pid]) },
  ])('$what is told, and the sync goes on by itself', async ({ reason, begin }) => {
    const company = await control.addCompany({
      name: 'In trouble',
      plan: 'enterprise',
      contacts: 1_550,
      conversations: 1_050,
    });
    await control.fault({
      match: { company_id: company.id, path: '/contacts' },
      fault: { delay_ms: 300 },
      times: 10,
    });
    const browser = world.browser();
    const id = await world.install(browser, company);
    await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.pages >= 2);
    const dashboard = async () => (await browser.get(`/instances/${id}`)).text();
    expect(await dashboard()).not.toMatch(/database/i);

    const end = await begin();
    try {
      const unready = await waitFor(async () => {
        const page = await browser.get('/readyz');
        return page.status === 503 && reason.test(page.body) && page;
      }, 'readiness to tell');
      expect(unready.body).toMatch(/database/);
      await waitFor(async () => /database/i.test(await dashboard()), 'the dashboard to tell');
      await worker.waitForOutput(reason);
      const refused = await browser.post(`/instances/${id}/pause`);
      expect(refused.status).toBe(503);
      expect((await browser.get('/healthz')).status).toBe(200);
    } finally {
      await end();
    }
    await world.waitForSync(browser, id, BACK_WITHIN_MS);
    expect((await browser.get('/readyz')).status).toBe(200);
    await waitFor(async () => !/database/i.test(await dashboard()), 'the dashboard to be calm');
    await expectWhole(world, company, browser, id);
  });
});
