import { describe, expect, it } from 'vitest';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { storedTokens } from './support/stored-tokens.ts';
import { createWorld } from './support/world.ts';

const HOUR_MS = 60 * 60_000;
/** Longer than the app waits for the token route. */
const HANGS_MS = 50_000;

const TROUBLES = [
  { what: '500', fault: { status: 500 }, times: 3, statuses: [500, 500, 500, 200] },
  { what: '429', fault: { status: 429, headers: { 'retry-after': '3' } }, times: 1, statuses: [429, 200] },
  { what: 'a broken connection', fault: { drop: 'before' as const }, times: 2, statuses: [0, 0, 200] },
  { what: 'a timeout', fault: { delay_ms: HANGS_MS }, times: 1, statuses: [200] },
];

describe('12. 500, 429 and timeouts of the token route keep the grant and back off with jitter.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const { control } = world;
  await world.startAll();

  const install = async (name: string) => {
    const { company, browser, id } = await world.synced({ name });
    return { browser, company, id, match: { path: '/oauth/token', company_id: company.id } };
  };
  const troubled = await Promise.all(TROUBLES.map(({ what }) => install(what)));
  const down = await Promise.all(Array.from({ length: 4 }, (_, index) => install(`Down ${index}`)));
  const mark = await control.mark();
  await control.clock({ advance_ms: HOUR_MS + 1_000 });

  const asked = async (company: SandboxCompany) =>
    (await control.tokenRequests(mark)).filter(({ company_id }) => company_id === company.id);

  it.concurrent.each(TROUBLES.map((trouble, index) => ({ ...trouble, index })))(
    'keeps the grant after $what, and goes on when it is over',
    async ({ fault, times, statuses, index }) => {
      const { browser, company, id, match } = troubled[index] ?? expect.fail();
      const before = await storedTokens(world, id);
      await control.fault({ match, fault, times });
      await world.press(browser, id, 'sync');
      await world.waitForStatus(browser, id, ({ resources }) =>
        Boolean(resources.contacts.error ?? resources.conversations.error),
      );
      expect(await storedTokens(world, id)).toEqual(before);
      const status = await world.waitForSync(browser, id);
      expect(status).toMatchObject({ status: 'active', resources: { contacts: { error: null } } });
      const requests = await asked(company);
      expect(requests.map((entry) => entry.status)).toEqual(statuses);
      const [first, second] = requests;
      if (first?.status === 429) expect((second?.at ?? 0) - first.at).toBeGreaterThanOrEqual(3_000);
    },
  );

  it.concurrent('waits longer from try to try, and not as long for each company', async ({ expect }) => {
    for (const { match } of down) await control.fault({ match, fault: { status: 503 }, times: 10_000 });
    for (const { browser, id } of down) await world.press(browser, id, 'sync');
    const pauses = await Promise.all(
      down.map(async ({ browser, company, id }) => {
        await expect.poll(async () => (await asked(company)).length).toBeGreaterThanOrEqual(4);
        expect((await world.status(browser, id)).status).toBe('active');
        const [first = 0, second = 0, third = 0, fourth = 0] = (await asked(company)).map(({ at }) => at);
        return { early: second - first, late: fourth - third };
      }),
    );
    const [early, late] = [pauses.map((pause) => pause.early), pauses.map((pause) => pause.late)];
    const sum = (all: number[]) => all.reduce((total, one) => total + one, 0);
    expect(sum(late)).toBeGreaterThan(1.5 * sum(early));
    expect(Math.max(...late)).toBeGreaterThan(1.1 * Math.min(...late));
  });
});
