import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { readCopy, readService } from './support/lists.ts';
import { waitFor } from './support/wait-for.ts';
import { createWorld } from './support/world.ts';

/** From the moment at which there is a Redis again. */
const BACK_WITHIN_MS = 60_000;

describe('30. Redis emptied, restarted or half-open: schedules and runs are back within a minute.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 }, env: { SYNC_INTERVAL_MINUTES: '0.05' } });
  const { control, redis } = world;
  const { worker } = await world.start();

  const readiness = async () => (await world.browser().get('/readyz')).status;
  const untilToldAway = () => waitFor('the outage to be told', async () => (await readiness()) === 503);

  it.each([
    [
      'is emptied',
      async () => {
        const client = new Redis(redis.url);
        await client.flushall();
        client.disconnect();
      },
    ],
    [
      'dies and starts again, empty',
      async () => {
        await redis.kill();
        await untilToldAway();
        await redis.start();
      },
    ],
    [
      'keeps its connections open and answers nothing for a while',
      async () => {
        redis.freeze();
        await untilToldAway();
        redis.unfreeze();
      },
    ],
  ])('a run under way and the next ones go on after a Redis that %s', async (_what, outage) => {
    const company = await control.addCompany({
      name: 'Goes on',
      plan: 'enterprise',
      contacts: 2_050,
      conversations: 150,
    });
    const match = { path: '/contacts', company_id: company.id };
    await control.fault({ match, fault: { delay_ms: 200 }, times: 15 });
    const first = world.browser();
    const id = await world.install(first, company);
    await world.waitForStatus(first, id, 'under way', ({ resources }) => resources.contacts.pages >= 3);
    const mark = await control.mark();
    await outage();
    const back = performance.now();

    // Nobody does anything: looked at from outside, as the browser's session may be gone with Redis.
    const pages = async () =>
      (await control.requests(mark)).filter(
        ({ company_id, path, status }) => company_id === company.id && path === '/contacts' && status === 200,
      );
    const firstPages = async () => (await pages()).filter(({ query }) => query.page_token === undefined);
    await waitFor('the run to go on', async () => (await pages()).length > 0, BACK_WITHIN_MS);
    await waitFor(
      'two more runs',
      async () => (await firstPages()).length >= 2,
      BACK_WITHIN_MS - (performance.now() - back),
    );
    expect(await readiness()).toBe(200);
    const again = world.browser();
    expect(await world.install(again, company)).toBe(id);
    await world.waitForSync(again, id);
    for (const list of ['contacts', 'conversations'] as const) {
      const [copy, service] = [
        await readCopy(world, again, id, list),
        await readService(world, company, list),
      ];
      expect(copy.length).toBe(service.length);
      expect(copy.filter((document, at) => document !== service[at])).toEqual([]);
    }
    await world.press(again, id, 'pause');
  });

  it('the worker that has seen all of that ends in order', async () => {
    expect((await worker.stop('SIGTERM')).code).toBe(0);
  });
});
