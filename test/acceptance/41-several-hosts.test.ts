import { describe, expect, it } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';
import { HandlerReport, newest } from './support/handler-report.ts';
import { expectLimitHeld, expectWhole, readService, syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const WINDOW_MS = 2_000;
const LISTS = ['contacts', 'conversations'] as const;
const COMPANIES = ['One', 'Two', 'Three'];

describe('41. The same promises hold with PostgreSQL and workers on several hosts (run with `TEST_DATABASE=postgres`).', async () => {
  const world = await createWorld({ isPostgres: true, sandbox: { windowMs: WINDOW_MS, latencyMs: 10 } });
  const { control } = world;
  const report = new HandlerReport();
  /** A host shares no directory and no clock with the others, but PostgreSQL and Redis. */
  const host = (clockMs: number) => ({ ...report.options, cwd: tempDir(), clockMs });
  await world.startWeb(host(0));
  const [victim] = await Promise.all([world.startWorker(host(2_000)), world.startWorker(host(-2_000))]);

  it('two workers copy three companies, one is killed on the way, and nothing is lost', async () => {
    const installed = await Promise.all(
      COMPANIES.map(async (name) => {
        // The first fills a window.
        const many = name === COMPANIES[0] ? 7_050 : 2_050;
        const records = { contacts: many, conversations: many - 500 };
        const company = await control.addCompany({ name, plan: 'enterprise', ...records });
        const browser = world.browser();
        return { company, browser, id: await world.install(browser, company) };
      }),
    );
    const isUnderWay = async ({ browser, id }: (typeof installed)[number]) =>
      (await world.status(browser, id)).resources.contacts.pages >= 15;
    await waitFor(async () => (await Promise.all(installed.map(isUnderWay))).every(Boolean), 'all under way');
    await victim.stop('SIGKILL');
    const killed = await control.mark();
    const other = await world.startWorker(host(90_000));
    for (const { browser, id } of installed) await world.waitForDelivery(browser, id);
    expect(other.output()).not.toContain('"level":"error"');

    for (const { company, browser, id } of installed) {
      for (const resource of LISTS) {
        const changes = { resource, create: 50, change: 200, delete: 100 };
        await control.call('POST', `companies/${company.id}/records`, changes);
      }
      await syncAgain(world, browser, id);
      await world.waitForDelivery(browser, id);
      await expectWhole(world, company, browser, id);
      for (const list of LISTS) {
        const { documents, deleted } = newest(report.changes(id, list));
        expect(documents).toEqual(await readService(world, company, list));
        expect(deleted.length).toBe(100);
      }
      const requests = await world.counted(company);
      expectLimitHeld(requests, WINDOW_MS);
      expect(requests.filter(({ n }) => n > killed).length).toBeGreaterThan(0);
    }
  });
});
