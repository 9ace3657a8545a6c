import { randomInt } from 'node:crypto';
import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import type { TestProcess } from '../support/spawn-entry.ts';
import { waitFor } from '../support/wait-for.ts';
import { expectLimitHeld, expectWhole, syncAgain } from './support/lists.ts';
import { createWorld } from './support/world.ts';

const KILLS = 50;
const AT_ONCE = 4;
const WINDOW_MS = 2_000;
const RECORDS = { contacts: 9_050, conversations: 9_000 };
const PAGES = 181;
/** Several kills in a row may hit the worker that has the job, and each costs the job's lock. */
const PAGE_WITHIN_MS = 400_000;

describe('29. Fifty SIGKILLs over one sync, or a SIGSTOP longer than the job lock, lose nothing and double nothing.', async () => {
  const world = await createWorld({ sandbox: { windowMs: WINDOW_MS, latencyMs: 10 } });
  const { control } = world;
  await world.startWeb();

  it('fifty workers are killed at random while one company is synced', { timeout: 900_000 }, async () => {
    // A killed worker's successor starts while the others work: a start takes most of the time.
    const workers = await Promise.all(Array.from({ length: AT_ONCE }, () => world.startWorker()));
    const starting: Promise<TestProcess>[] = [];
    const { company, browser, id } = await world.installed({
      name: 'Often killed',
      plan: 'enterprise',
      ...RECORDS,
    });
    // Spread over the pages, not over the time: so the sync outlasts the kills on a machine of any speed.
    const moments = Array.from({ length: KILLS }, () => randomInt(PAGES - 20)).sort(
      (one, other) => one - other,
    );
    for (const moment of moments) {
      const isRead = async () => (await world.counted(company)).length >= moment;
      await waitFor(isRead, `page ${moment}`, PAGE_WITHIN_MS);
      if (workers.length === 0) workers.push(...(await Promise.all(starting.splice(0))));
      await sleep(randomInt(50));
      const [victim] = workers.splice(randomInt(workers.length), 1);
      expect(await victim?.stop('SIGKILL'), victim?.output()).toEqual({ code: null, signal: 'SIGKILL' });
      starting.push(world.startWorker());
    }
    workers.push(...(await Promise.all(starting)));
    const { resources } = await world.waitForSync(browser, id);
    expect([resources.contacts.deleted, resources.conversations.deleted]).toEqual([0, 0]);
    await expectWhole(world, company, browser, id);
    const requests = await world.counted(company);
    expectLimitHeld(requests, WINDOW_MS);
    await Promise.all(workers.map((worker) => worker.stop('SIGKILL')));
  });

  it('a worker that is stopped beyond its job lock writes nothing when it goes on', async () => {
    const stopped = await world.startWorker();
    const company = await control.addCompany({
      name: 'Stopped',
      plan: 'enterprise',
      contacts: 450,
      conversations: 350,
    });
    await control.fault({
      match: { path: '/contacts', company_id: company.id, nth: 3 },
      fault: { delay_ms: 500 },
    });
    const browser = world.browser();
    const id = await world.install(browser, company);
    await waitFor(async () => (await control.faults()).at(-1)?.used, 'the third page to be asked for');
    await world.stopBetweenWrites(stopped);
    const healthy = await world.startWorker();
    await world.waitForSync(browser, id);
    await control.call('POST', `companies/${company.id}/records`, {
      resource: 'contacts',
      delete: 60,
      change: 200,
    });
    await syncAgain(world, browser, id);
    stopped.signal('SIGCONT');
    // What it had under way is over when it has ended in order.
    expect(await stopped.stop('SIGTERM'), stopped.output()).toEqual({ code: 0, signal: null });
    await expectWhole(world, company, browser, id);
    await healthy.stop('SIGKILL');
  });
});
