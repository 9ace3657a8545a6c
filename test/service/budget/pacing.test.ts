import { describe, expect, it } from 'vitest';
import { simulate } from './model/simulation.ts';
import { USUAL_SCENARIO } from './model/usual-scenario.ts';
import { OTHER_ROUTE, ROUTE } from './rate.ts';
import { virtualBudget } from './virtual-budget.ts';

const MINUTE_MS = 60_000;

/** A guard refuses the fifth request of a route that has sent one every 10 ms; it lets 4 through in 50 + 60 ms. */
async function refusedAtTheFifth() {
  const parts = virtualBudget();
  const { request, answer } = parts;
  for (let index = 0; index < 4; index++) await request(answer(118 - index));
  await request({ ...answer(114), block: { forMs: 60, of: 'bucket' } });
  return parts;
}
const GAP_MS = (1.25 * (40 + 60)) / 4;

describe('a route that a guard refused which we know nothing of', () => {
  it('keeps a distance from then on: what the guard let through, and a quarter', async () => {
    const { pass, acquire, refusal } = await refusedAtTheFifth();
    expect(await refusal()).toMatchObject({ why: 'blocked', waitMs: 60 });
    pass(60);
    await acquire();
    expect(await refusal()).toMatchObject({ why: 'pace', waitMs: Math.ceil(GAP_MS) });
    pass(Math.ceil(GAP_MS));
    await acquire();
  });

  it('is never slower than the limit wants: what is left of the window, by the permits left', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    await request(answer(100));
    await request({ ...answer(100), block: { forMs: 9_000, of: 'bucket' } });
    pass(9_000);
    await acquire();
    const { why, waitMs } = await refusal();
    expect(why).toBe('pace');
    expect(waitMs).toBeLessThanOrEqual((0.9 * 21_000) / 98 + 1);
    expect(waitMs).toBeGreaterThan((0.6 * 21_000) / 100);
  });

  it('does not hurry in what is left of the window in which it was refused, however many permits are left', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    for (let index = 0; index < 4; index++) await request(answer(118 - index, 2_000));
    await request({ ...answer(114, 2_000), block: { forMs: 1_000, of: 'bucket' } });
    pass(1_000);
    await acquire();
    expect((await refusal()).waitMs).toBe(Math.ceil(500 / 14));
  });

  it('finds out about a new window at its start', async () => {
    const { pass, acquire, request, answer } = virtualBudget();
    for (let index = 0; index < 4; index++) await request(answer(118 - index, 4_000));
    await request({ ...answer(114, 4_000), block: { forMs: 1_000, of: 'bucket' } });
    pass(1_000);
    await request(answer(113, 100));
    pass(100);
    await acquire();
  });

  it('does not make wait what was not busy with it, and makes wait at its share what was', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    for (let index = 0; index < 4; index++)
      await request(answer(118 - index), index % 2 ? OTHER_ROUTE : ROUTE);
    await request({ ...answer(114), block: { forMs: 60, of: 'bucket' } });
    await acquire('/teammates');
    await acquire('/teammates');
    expect((await refusal(OTHER_ROUTE)).why).toBe('pace');
    pass(60);
    await acquire(OTHER_ROUTE);
    expect((await refusal(OTHER_ROUTE)).waitMs).toBe(Math.ceil((1.25 * 100) / 2));
  });

  it('takes refusals of requests that were on their way together for one', async () => {
    const { budget, pass, acquire, refusal, request, answer } = virtualBudget();
    for (let index = 0; index < 4; index++) await request(answer(118 - index));
    const together = [await acquire(), await acquire(), await acquire()];
    pass(10);
    for (const permit of together)
      await budget.settle(permit, { ...answer(114), block: { forMs: 60, of: 'bucket' } });
    pass(60);
    await acquire();
    expect((await refusal()).waitMs).toBe(Math.ceil(GAP_MS));
  });

  it('goes half as fast when it is refused again', async () => {
    const { pass, request, answer, acquire, refusal } = await refusedAtTheFifth();
    pass(60);
    await request({ ...answer(114), block: { forMs: 60, of: 'bucket' } });
    // The second block in a row is longer.
    pass(100);
    await acquire();
    expect((await refusal()).waitMs).toBe(Math.ceil(2 * GAP_MS));
  });

  it('takes what is refused before the guard would let it through for nothing new', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    for (let index = 0; index < 8; index++)
      await request(answer(118 - index), index % 2 ? OTHER_ROUTE : ROUTE);
    await request({ ...answer(110), block: { forMs: 1_000, of: 'bucket' } });
    pass(500);
    await request({ ...answer(110), block: { forMs: 490, of: 'bucket' } }, OTHER_ROUTE);
    pass(490);
    await acquire(OTHER_ROUTE);
    pass(1_000);
    await acquire(OTHER_ROUTE);
    expect((await refusal(OTHER_ROUTE)).waitMs).toBe(Math.ceil((1.25 * 1_080) / 4));
  });

  it('goes at another moment than the routes that share its pace', async () => {
    const { pass, acquire, refusal, request, answer } = virtualBudget();
    for (let index = 0; index < 4; index++)
      await request(answer(118 - index), index % 2 ? OTHER_ROUTE : ROUTE);
    await request({ ...answer(114), block: { forMs: 60, of: 'bucket' } });
    pass(60);
    await acquire();
    expect((await refusal(OTHER_ROUTE)).waitMs).toBe(Math.ceil((1.25 * 100) / 2 / 4));
  });

  it('forgets slowly: all of it for five minutes, then less and less for five more', async () => {
    for (const [minutes, share] of [
      [4.9, 1],
      [7.5, 0.5],
    ] as const) {
      const { pass, acquire, refusal, request, answer } = await refusedAtTheFifth();
      pass(minutes * MINUTE_MS);
      await request(answer(119, 30_000, Date.UTC(2032, 0, 1)));
      pass(100);
      await acquire();
      const { waitMs } = await refusal();
      expect(waitMs).toBeGreaterThanOrEqual(Math.floor(GAP_MS * share) - 1);
      expect(waitMs).toBeLessThanOrEqual(Math.ceil(GAP_MS * share));
    }
    const { pass, acquire, request, answer } = await refusedAtTheFifth();
    pass(10.1 * MINUTE_MS);
    await request(answer(119, 30_000, Date.UTC(2032, 0, 1)));
    await acquire();
    await acquire();
  });
});

describe('a guard of 5 requests per 100 ms on both list routes together', () => {
  const guard = { routes: [ROUTE, OTHER_ROUTE], limit: 5, windowMs: 100 };

  it.each([false, true])('is learned by two refusals (`retry-after` in whole seconds: %s)', async (whole) => {
    const { service } = USUAL_SCENARIO;
    const { sent } = await simulate({
      ...USUAL_SCENARIO,
      runMs: 12_000,
      latencyMs: [5, 40],
      service: { ...service, guard, wholeRetryAfter: whole },
    });
    const refused = sent.filter(({ outcome }) => outcome === 'guard');
    expect(refused.length).toBeGreaterThan(0);
    expect(refused.length).toBeLessThanOrEqual(2);
    expect(sent.filter(({ outcome }) => outcome === 'limit')).toEqual([]);
    // Two windows, the second of which begins a little late.
    expect(sent.length - refused.length).toBeGreaterThanOrEqual(228);
  });
});

describe('a guard of 60 requests a minute on both list routes together, half of what the limit allows', () => {
  it('is learned by two windows', async () => {
    const { service } = USUAL_SCENARIO;
    const guard = { routes: [ROUTE, OTHER_ROUTE], limit: 60, windowMs: MINUTE_MS };
    const { sent } = await simulate({
      ...USUAL_SCENARIO,
      runMs: 5 * MINUTE_MS,
      service: { ...service, guard, windowMs: MINUTE_MS, wholeRetryAfter: true },
    });
    const refused = sent.filter(({ outcome }) => outcome === 'guard');
    // Each time on both routes.
    expect(refused.length).toBeLessThanOrEqual(4);
    // The guard lets 300 through.
    expect(sent.length - refused.length).toBeGreaterThanOrEqual(280);
  });
});
