import { setTimeout as sleep } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import type { FaultOrder } from './support/sandbox-control.ts';
import { endLease, storedTokens } from './support/stored-tokens.ts';
import { createWorld } from './support/world.ts';

const HOUR_MS = 60 * 60_000;

interface Kill {
  what: string;
  /** What becomes of the answer of the token route. */
  fault: FaultOrder['fault'];
  /** When it is killed: once the token route was asked, or so many milliseconds after it has answered. */
  at: 'asked' | number;
  end: 'active' | 'needs_reauthorization';
}

const KILLS: Kill[] = [
  { what: 'killed while it asks', fault: { delay_ms: 60_000 }, at: 'asked', end: 'active' },
  { what: 'killed when the answer is lost', fault: { drop: 'after' }, at: 0, end: 'active' },
  ...[0, 8].map((ms): Kill => {
    return { what: `killed ${ms} ms after the answer`, fault: { delay_ms: 300 }, at: ms, end: 'active' };
  }),
  {
    what: 'killed while it asks, the old refresh token ended',
    fault: { delay_ms: 60_000, revoke: 'grant' },
    at: 'asked',
    end: 'needs_reauthorization',
  },
];

describe('10. The newest refresh token is durable before it is used; a SIGKILL between answer and commit ends in a recovery or in `needs_reauthorization`, never in a loop.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 } });
  const { control } = world;
  await world.startWeb();
  let worker = await world.startWorker();

  /** A company whose next refresh brings a new refresh token. */
  const inLastDay = async (name: string) => {
    const { company, browser, id } = await world.installed({ name });
    const { token } = await world.waitForSync(browser, id);
    await control.clock({ set: Date.parse(token.refresh_expires_at ?? '') - 12 * HOUR_MS });
    /** The journal has a request when it is answered, which may be long after it came. */
    const tokenRequests = async (mark: number, since = 0) => {
      const requests = await control.tokenRequests(mark);
      const own = requests.filter(({ company_id, at }) => company_id === company.id && at >= since);
      return own.map(({ status }) => status);
    };
    return { company, browser, id, tokenRequests };
  };

  it.each(KILLS)('$what: ends in $end, without a loop', async ({ what, fault, at, end }) => {
    const { company, browser, id, tokenRequests } = await inLastDay(what);
    const mark = await control.mark();
    await control.fault({ match: { path: '/oauth/token', company_id: company.id }, fault });
    await world.press(browser, id, 'sync');
    if (at === 'asked') await waitFor(async () => (await control.faults()).at(-1)?.used, 'the refresh');
    else await waitFor(async () => (await tokenRequests(mark)).length > 0, 'the answer');
    if (typeof at === 'number') await sleep(at);
    await worker.stop('SIGKILL');
    await endLease(world, id);

    const { now: killedAt } = await control.state();
    worker = await world.startWorker();
    if (end === 'active') {
      const status = await world.waitForSync(browser, id);
      expect(status).toMatchObject({ status: 'active', token: { rotations: 1 } });
    } else {
      await world.waitForStatus(browser, id, ({ status }) => status === end);
      expect(await world.install(browser, company)).toBe(id);
      expect((await world.waitForSync(browser, id)).status).toBe('active');
    }
    expect((await tokenRequests(mark, killedAt)).length).toBeLessThanOrEqual(2);
  });

  it('has stored the new tokens when it first uses them', async () => {
    const { company, browser, id, tokenRequests } = await inLastDay('Durable');
    const before = await storedTokens(world, id);
    const mark = await control.mark();
    await control.fault({
      match: { path: '/oauth/token', company_id: company.id },
      fault: { delay_ms: 500 },
    });
    await world.press(browser, id, 'sync');
    await waitFor(async () => (await control.faults()).at(-1)?.used, 'the refresh');
    await control.fault({ match: { method: 'GET', company_id: company.id }, fault: { delay_ms: 60_000 } });
    await waitFor(async () => (await control.faults()).at(-1)?.used, 'a request with the new token');
    await worker.stop('SIGKILL');
    const after = await storedTokens(world, id);
    expect(after.access_token).not.toBe(before.access_token);
    expect(after.refresh_token).not.toBe(before.refresh_token);
    worker = await world.startWorker();
    expect(await world.waitForSync(browser, id)).toMatchObject({ status: 'active', token: { rotations: 1 } });
    expect((await tokenRequests(mark)).length).toBeLessThanOrEqual(2);
  });
});
