import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { type Outcome, type Permit, RateBudget } from '../../../src/service/budget.ts';
import { startTestRedis } from '../../support/test-redis.ts';
import { frozenRedis } from './frozen-redis.ts';
import { modelBudget } from './model/model-budget.ts';

const START_MS = Date.UTC(2031, 0, 1);
const BUCKET = { name: 'bucket', limit: 2, windowMs: 400 };

const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());

const rate = fc.record({
  limit: fc.integer({ min: 1, max: 150 }),
  remaining: fc.integer({ min: 0, max: 20 }),
  resetMs: fc.constantFrom(0, 600, 1_600, 60_000).map((ms) => START_MS + ms),
  endsInMs: fc.integer({ min: 0, max: 61_000 }),
  burstRemaining: fc.constantFrom(undefined, 30),
});
const outcome: fc.Arbitrary<Outcome> = fc.oneof(
  rate.map((heard) => ({ answered: true, rate: heard })),
  fc.constantFrom<Outcome>({}, { unsent: true }, { answered: true }),
  fc.record({
    answered: fc.constant(true),
    rate,
    block: fc.record({
      forMs: fc.integer({ min: 50, max: 3_000 }),
      of: fc.constantFrom('company', 'bucket', 'request', 'error'),
    }),
  }),
);
const step = fc.record({
  do: fc.constantFrom('acquire', 'acquire', 'release', 'exchange'),
  afterMs: fc.oneof(fc.integer({ min: 0, max: 60 }), fc.integer({ min: 0, max: 30_000 })),
  route: fc.constantFrom('/contacts', '/conversations'),
  inBucket: fc.boolean(),
  which: fc.nat(),
  outcome,
});
type Step = typeof step extends fc.Arbitrary<infer One> ? One : never;

/** Runs the steps, and returns all that the budget said. */
async function play(budget: RateBudget, company: string, steps: readonly Step[], pass: (ms: number) => void) {
  const permits: Permit[] = [];
  const said: unknown[] = [];
  for (const { do: action, afterMs, route, inBucket, which, outcome } of steps) {
    pass(afterMs);
    const permit = permits[which % Math.max(permits.length, 1)];
    if (action === 'release') {
      if (permit !== undefined) await budget.release(permit, outcome);
      continue;
    }
    const admission =
      action === 'exchange' && permit !== undefined
        ? await budget.exchange(permit, outcome)
        : await budget.acquire(company, route, inBucket ? BUCKET : undefined);
    if (admission.permit !== undefined) permits.push(admission.permit);
    said.push(admission.permit === undefined ? admission : 'a permit', await budget.read(company));
  }
  return said;
}

test('the model of Redis answers like Redis', async () => {
  let companies = 0;
  let nowMs = START_MS;
  const real = new RateBudget(frozenRedis(redis, () => nowMs));
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 5, maxLength: 40 }), async (steps) => {
      const company = `company-${companies++}`;
      nowMs = START_MS;
      const onRedis = await play(real, company, steps, (ms) => {
        nowMs += ms;
      });
      const model = modelBudget(START_MS);
      // The real one expires keys by the real clock.
      model.redis.expires = false;
      const onModel = await play(model.budget, company, steps, (ms) => {
        model.redis.nowMs += ms;
      });
      expect(onModel).toEqual(onRedis);
    }),
    { seed: 20_310_102, numRuns: 100 },
  );
  expect(companies).toBeGreaterThan(0);
});
