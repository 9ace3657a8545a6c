import * as fc from 'fast-check';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { CountWatch } from '../../../src/service/budget/count-watch.ts';
import { type Permit, RateBudget, type Settlement } from '../../../src/service/budget/rate-budget.ts';
import { startTestRedis } from '../../support/test-redis.ts';
import { frozenRedis } from './frozen-redis.ts';
import { modelBudget } from './model/model-budget.ts';

const START_MS = Date.UTC(2031, 0, 1);
const BUCKET = { name: 'bucket', tier: '2', limit: 2, windowMs: 400 };

const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());

type Step =
  | { do: 'acquire' | 'observe'; afterMs: number; route: string; inBucket: boolean; settlement: Settlement }
  | { do: 'settle' | 'exchange'; afterMs: number; which: number; settlement: Settlement };

const afterMs = fc.oneof(
  fc.integer({ min: 0, max: 60 }),
  fc.integer({ min: 0, max: 3_000 }),
  fc.integer({ min: -20_000, max: 70_000 }),
);
const rate = fc.record({
  limit: fc.integer({ min: 1, max: 150 }),
  remaining: fc.integer({ min: 0, max: 20 }),
  resetMs: fc.constantFrom(0, 600, 1_600, 60_000).map((ms) => START_MS + ms),
  endsInMs: fc.integer({ min: 0, max: 61_000 }),
  burstRemaining: fc.constantFrom(undefined, 30),
});
const settlement: fc.Arbitrary<Settlement> = fc.oneof(
  rate.map((heard) => ({ answer: { rate: heard } })),
  fc.constantFrom<Settlement>({}, { unsent: true }, { answer: { rate: undefined } }),
  fc.record({
    answer: fc.record({ rate }),
    block: fc.record({
      forMs: fc.integer({ min: 50, max: 3_000 }),
      of: fc.constantFrom('company', 'bucket', 'request', 'trouble'),
    }),
  }),
);
const steps: fc.Arbitrary<Step[]> = fc.array(
  fc.oneof(
    fc.record({
      do: fc.constantFrom('acquire', 'acquire', 'acquire', 'observe'),
      afterMs,
      route: fc.constantFrom('/contacts', '/conversations'),
      inBucket: fc.boolean(),
      settlement,
    }),
    fc.record({ do: fc.constantFrom('settle', 'exchange'), afterMs, which: fc.nat(), settlement }),
  ),
  { minLength: 5, maxLength: 60 },
);

/** A state, but for the names of permits: each budget has its own. */
function withoutNames(state: unknown): unknown {
  const { probe, flight, ...rest } = JSON.parse(String(state));
  return { ...rest, isProbed: probe !== undefined, ends: Object.values(flight).sort() };
}

/** Runs the steps and tells everything that the budget said. */
async function play(
  budget: RateBudget,
  company: string,
  sequence: readonly Step[],
  pass: (ms: number) => void,
) {
  const permits: Permit[] = [];
  const told: unknown[] = [];
  const hear = (admission: Awaited<ReturnType<RateBudget['acquire']>>) => {
    if (admission.permit !== undefined) permits.push(admission.permit);
    told.push(admission.permit === undefined ? admission : 'a permit');
  };
  for (const step of sequence) {
    pass(step.afterMs);
    if (step.do === 'acquire') {
      hear(await budget.acquire(company, step.route, step.inBucket ? BUCKET : undefined));
    } else if (step.do === 'observe') {
      const heard = step.settlement.answer?.rate;
      if (heard !== undefined) await budget.observe(company, heard);
    } else if ('which' in step) {
      const permit = permits[step.which % Math.max(permits.length, 1)];
      if (permit === undefined) continue;
      if (step.do === 'settle') await budget.settle(permit, step.settlement);
      else hear(await budget.exchange(permit, step.settlement));
    }
  }
  return told;
}

test('the model of Redis answers as Redis does, whatever is asked', async () => {
  let companies = 0;
  let now = START_MS;
  const frozen = frozenRedis(redis, () => now);
  await fc.assert(
    fc.asyncProperty(steps, async (sequence) => {
      const company = `company-${companies++}`;
      now = START_MS;
      // It knows of no run before.
      await redis.flushall();
      const real = new RateBudget(frozen, 2, undefined, 0, new CountWatch(frozen, () => now));
      const onRedis = await play(real, company, sequence, (ms) => {
        now += ms;
      });
      const model = modelBudget(START_MS, 2);
      // The real one forgets keys by the clock on the wall, for which the test does not wait.
      model.redis.expires = false;
      const onModel = await play(model.budget, company, sequence, (ms) => {
        model.redis.nowUs += ms * 1_000;
      });
      expect(onModel).toEqual(onRedis);
      const key = `budget:{${company}}:state`;
      expect(withoutNames(model.redis.call('GET', [key]))).toEqual(withoutNames(await redis.get(key)));
    }),
    { seed: 20_310_102, numRuns: 150, interruptAfterTimeLimit: 4_000 },
  );
  expect(companies).toBeGreaterThan(0);
});
