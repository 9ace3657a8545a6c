import { describe, expect, it } from 'vitest';
import { expectLimitHeld, expectWhole } from './support/lists.ts';
import { createWorld, isSynced } from './support/world.ts';

const WINDOW_MS = 2_000;
/** 360 pages: three windows. */
const LARGE = { contacts: 20_050, conversations: 15_900 };
const LONGEST_WAIT_MS = 15 * 60_000;

describe('28. No window of the service ever holds more requests than the limit, with several processes, kill -9, and a clock 90 s off; `retry-after` in any form leads to a bounded wait that uses up no try, and other companies go on.', async () => {
  const world = await createWorld({
    sandbox: { windowMs: WINDOW_MS, latencyMs: 10 },
    // Checks would come between the requests that are counted.
    env: { CHECK_INTERVAL_SECONDS: '0' },
  });
  const { control } = world;
  await world.startWeb();
  const [victim] = await Promise.all([
    world.startWorker(),
    world.startWorker({ clockMs: 90_000 }),
    world.startWorker({ clockMs: -90_000 }),
  ]);

  it('four processes of three clocks, one of them killed, keep the limit in each window', async () => {
    const { company, browser, id } = await world.installed({ name: 'Large', plan: 'enterprise', ...LARGE });
    await world.waitForStatus(browser, id, ({ resources }) => resources.contacts.pages >= 30);
    await victim.stop('SIGKILL');
    await world.startWorker();
    await world.waitForSync(browser, id);
    const requests = await world.counted(company);
    expect(requests.length).toBeGreaterThanOrEqual(360);
    expectLimitHeld(requests, WINDOW_MS);
    expect((await world.download(browser, id, 'contacts')).length).toBe(LARGE.contacts);
  });

  /** Installs a company whose first requests for contacts are refused. */
  async function refused(status: number, said: string | undefined, times: number) {
    const company = await control.addCompany({ name: 'Refused', contacts: 150, conversations: 0 });
    const seconds = /^date(.+)$/.exec(said ?? '')?.[1];
    const value = seconds === undefined ? said : new Date(Date.now() + Number(seconds) * 1_000).toUTCString();
    const headers = value === undefined ? {} : { 'retry-after': value };
    await control.fault({
      match: { path: '/contacts', company_id: company.id },
      fault: { status, headers },
      times,
    });
    const browser = world.browser();
    return { company, browser, id: await world.install(browser, company) };
  }

  it.concurrent.each(
    [429, 503].flatMap((status): [number, string | undefined, number, number][] => [
      [status, '1', 2, 1_000],
      [status, '0.25', 2, 250],
      [status, 'date5', 1, 1_000],
      [status, 'date-3600', 2, 0],
      [status, '0', status === 429 ? 7 : 2, 0],
      [status, '-30', 2, 0],
      [status, '1, 0', 1, 1_000],
      [status, 'soon', 1, 0],
      [status, undefined, 1, 0],
    ]),
  )('%d with retry-after: %s is waited out, and uses up no try', async (status, said, times, leastMs) => {
    const { company, browser, id } = await refused(status, said, times);
    const seen = new Set<string>();
    await world.waitForStatus(browser, id, (now) => {
      seen.add(now.resources.contacts.state);
      return isSynced(now);
    });
    expect([...seen]).not.toContain('failed');
    const requests = (await world.counted(company)).filter(({ path }) => path === '/contacts');
    expect(requests.map((request) => request.status)).toEqual([
      ...Array<number>(times).fill(status),
      200,
      200,
    ]);
    const waits = requests.slice(1, times + 1).map(({ at }, index) => at - (requests[index]?.at ?? 0));
    expect(Math.min(...waits)).toBeGreaterThanOrEqual(leastMs);
    await expectWhole(world, company, browser, id, ['contacts']);
  });

  it.each(['86400', '99999999999999999999999999', 'Fri, 31 Dec 9999 23:59:59 GMT'])(
    'a wait of %s is bounded; other companies go on',
    async (said) => {
      const { company, browser, id } = await refused(429, said, 1);
      const { budget } = await world.waitForStatus(
        browser,
        id,
        (status) => status.budget.blocked_until !== null,
      );
      const waitMs = Date.parse(budget.blocked_until ?? '') - Date.now();
      expect(waitMs).toBeGreaterThan(LONGEST_WAIT_MS / 2);
      // The worker that noted it may have a clock 90 s off.
      expect(waitMs).toBeLessThanOrEqual(LONGEST_WAIT_MS + 100_000);
      const other = await control.addCompany({ name: 'Other' });
      const otherBrowser = world.browser();
      await world.waitForSync(otherBrowser, await world.install(otherBrowser, other));
      expect((await world.status(browser, id)).resources.contacts.state).toBe('waiting');
      expect((await world.counted(company)).filter(({ path }) => path === '/contacts').length).toBe(1);
    },
  );
});
