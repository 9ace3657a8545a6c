import { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { waitFor } from '../support/wait-for.ts';
import { expectWhole } from './support/lists.ts';
import type { SandboxCompany } from './support/sandbox-control.ts';
import { createWorld } from './support/world.ts';

/** From the moment at which there is a Redis again. */
const BACK_WITHIN_MS = 60_000;

describe('30. Redis emptied, restarted or half-open: schedules and runs are back within a minute.', async () => {
  const world = await createWorld({ sandbox: { windowMs: 2_000 }, env: { SYNC_INTERVAL_MINUTES: '0.05' } });
  const { control, redis } = world;
  const { worker } = await world.start();

  const readiness = async () => (await world.browser().get('/readyz')).status;
  const empty = async () => {
    const client = new Redis(redis.url);
    await client.flushall();
    client.disconnect();
  };
  const untilToldAway = () => waitFor(async () => (await readiness()) === 503, 'the outage to be told');

  it.each([
    ['is emptied', () => empty()],
    [
      'dies and starts again, empty',
      async () => {
        await redis.kill();
        await untilToldAway();
        await redis.start();
      },
    ],
    [
      'is silent for a while, with its connections open',
      async () => {
        redis.freeze();
        await untilToldAway();
        redis.unfreeze();
      },
    ],
  ])('runs go on after a Redis that %s', async (_what, outage) => {
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
    await world.waitForStatus(first, id, ({ resources }) => resources.contacts.pages >= 3);
    const mark = await control.mark();
    await outage();
    const back = performance.now();

    // Nobody does anything: looked at from outside, as the browser's session may be gone with Redis.
    const pages = async () =>
      (await control.requests(mark)).filter(
        ({ company_id, path, status }) => company_id === company.id && path === '/contacts' && status === 200,
      );
    const firstPages = async () => (await pages()).filter(({ query }) => query.page_token === undefined);
    await waitFor(async () => (await pages()).length > 0, 'the run to go on', BACK_WITHIN_MS);
    await waitFor(
      async () => (await firstPages()).length >= 2,
      'two more runs',
      BACK_WITHIN_MS - (performance.now() - back),
    );
    expect(await readiness()).toBe(200);
    const again = world.browser();
    expect(await world.install(again, company)).toBe(id);
    await world.waitForSync(again, id);
    await expectWhole(world, company, again, id);
    await world.press(again, id, 'pause');
  });

  it('a wait that the service asked for is kept when Redis is emptied', async () => {
    const [waiting, other] = [
      await control.addCompany({ name: 'Waiting' }),
      await control.addCompany({ name: 'Other' }),
    ];
    const refusal = { status: 429, headers: { 'retry-after': '600' } };
    await control.fault({ match: { path: '/contacts', company_id: waiting.id }, fault: refusal, times: 100 });
    const asked = async ({ id }: SandboxCompany) =>
      (await control.requests()).filter(({ company_id, path }) => company_id === id && path === '/contacts')
        .length;
    await world.install(world.browser(), other);
    await world.install(world.browser(), waiting);
    await waitFor(async () => (await asked(waiting)) === 1, 'the refusal');
    await waitFor(async () => (await asked(other)) > 0, 'the first sync');
    await empty();
    const before = await asked(other);
    await waitFor(async () => (await asked(other)) >= before + 3, 'three more runs', BACK_WITHIN_MS);
    expect(await asked(waiting)).toBe(1);
  });

  it('the worker that has seen all of that ends in order', async () => {
    expect((await worker.stop('SIGTERM')).code).toBe(0);
  });
});
