import * as fc from 'fast-check';
import type { ServiceFacts } from './service-model.ts';

/** Something that happens at a moment of the run. */
export type Happening =
  | { kind: 'redis clock' | 'service clock'; atMs: number; byMs: number }
  | { kind: 'limit'; atMs: number; limit: number };

/** Everything that a run of the model depends on: the same scenario, the same run. */
export interface Scenario {
  seed: number;
  runMs: number;
  workers: number;
  routes: readonly string[];
  /** Shortest and longest way there and back, in ms. */
  latencyMs: readonly [number, number];
  /** Of a request: it is not sent; lost before, or after the service counted it; its holder dies; it is settled late. */
  chances: { unsent: number; dropped: number; unanswered: number; crashed: number; late: number };
  service: ServiceFacts;
  /** Mean distance of another consumer's requests; 0: there is none. */
  othersEveryMs: number;
  happenings: readonly Happening[];
}

const windowMs = fc.constantFrom(4_000, 6_000, 10_000, 60_000);

function facts(guard: fc.Arbitrary<ServiceFacts['guard']>): fc.Arbitrary<ServiceFacts> {
  return fc.record({
    limit: fc.integer({ min: 3, max: 150 }),
    windowMs,
    windows: fc.constantFrom('first request', 'aligned'),
    reset: fc.constantFrom('exact', 'cut', 'rounded up'),
    remaining: fc.constant('true'),
    wholeRetryAfter: fc.boolean(),
    aheadMs: fc.integer({ min: -200_000, max: 200_000 }),
    dateAheadMs: fc.constant(0),
    guard,
  });
}

const latencyMs = fc
  .tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 600 }))
  .map(([least, more]) => [least, least + more] as const);

const late = fc.constantFrom(0, 0.3, 0.9);
const noLosses = {
  unsent: fc.constant(0),
  dropped: fc.constant(0),
  unanswered: fc.constant(0),
  crashed: fc.constant(0),
};
const chance = fc.constantFrom(0, 0.01, 0.05);

/** What all scenarios have in common; a run is as long as a few windows. */
function scenario(parts: {
  chances?: fc.Arbitrary<Scenario['chances']>;
  guard?: fc.Arbitrary<ServiceFacts['guard']>;
  happenings?: (runMs: number) => fc.Arbitrary<Happening[]>;
  othersEveryMs?: fc.Arbitrary<number>;
}): fc.Arbitrary<Scenario> {
  return facts(parts.guard ?? fc.constant(undefined)).chain((service) => {
    const runMs = Math.min(service.windowMs * 4, 90_000);
    return fc.record({
      seed: fc.nat(),
      runMs: fc.constant(runMs),
      workers: fc.integer({ min: 1, max: 6 }),
      routes: fc.constantFrom(['/contacts'], ['/contacts', '/conversations']),
      latencyMs,
      chances: parts.chances ?? fc.record({ ...noLosses, late }),
      service: fc.constant(service),
      othersEveryMs: parts.othersEveryMs ?? fc.constant(0),
      happenings: parts.happenings?.(runMs) ?? fc.constant([]),
    });
  });
}

/** Any delays and rounding, nothing lost. */
export const calm = scenario({});

const aside = fc.constantFrom('still' as const, 'slow' as const);

/** What is said to be left does not fall as it should, as of another limit, or is below zero; windows are as long as the contract's. */
export const misleading = fc
  .tuple(calm, fc.oneof(aside, fc.constant('overdrawn' as const)))
  .map(([base, remaining]) => ({ ...base, service: { ...base.service, windowMs: 60_000, remaining } }));

/** Nor is the end that is told the window's: it moves on with every answer. */
export const moving = fc
  .record({
    base: calm,
    remaining: aside,
    limit: fc.integer({ min: 120, max: 200 }),
    endsAheadMs: fc.integer({ min: 0, max: 60_000 }),
  })
  .map(({ base, ...told }) => ({
    ...base,
    runMs: 200_000,
    service: { ...base.service, windowMs: 60_000, ...told },
  }));

/** It tells of a limit of the customer's own, which others use half as fast at the most as we may use ours. */
export const anothers = fc
  .record({
    base: scenario({ chances: fc.record({ ...noLosses, late: fc.constant(0) }) }),
    limit: fc.integer({ min: 100, max: 200 }),
    aMinute: fc.integer({ min: 1, max: 90 }),
    burst: fc.integer({ min: 1, max: 40 }),
    laterMs: fc.integer({ min: 0, max: 59_999 }),
  })
  .filter(({ base, limit, aMinute, burst }) => {
    const oursAMinute = (60_000 * base.workers) / (base.latencyMs[1] + 2);
    return aMinute <= oursAMinute / 2 && aMinute + burst < limit;
  })
  .map(({ base, aMinute, ...toldOf }) => ({
    ...base,
    runMs: 200_000,
    service: {
      ...base.service,
      limit: 120,
      windowMs: 60_000,
      toldOf: { ...toldOf, everyMs: (60_000 * toldOf.burst) / aMinute },
    },
  }));

/** Places come free one by one, a window after each request; there are many who want one. */
export const sliding = fc
  .record({
    base: calm,
    workers: fc.integer({ min: 4, max: 6 }),
    limit: fc.integer({ min: 100, max: 150 }),
  })
  .map(({ base, workers, limit }) => ({
    ...base,
    workers,
    runMs: 100_000,
    service: {
      ...base.service,
      limit,
      windowMs: 60_000,
      windows: 'sliding' as const,
      reset: 'exact' as const,
    },
  }));

/** `Date` comes from another clock than the limit's, and is ahead of it; some windows long, as the app has to learn it. */
export const skewed = fc
  .record({ base: calm, dateAheadMs: fc.integer({ min: 1, max: 70_000 }) })
  .map(({ base, dateAheadMs }) => ({
    ...base,
    runMs: 400_000,
    service: { ...base.service, windowMs: 60_000, dateAheadMs },
  }));

/** Requests and answers are lost, never leave, and workers die. */
export const lossy = scenario({
  chances: fc.record({ unsent: chance, dropped: chance, unanswered: chance, crashed: chance, late }),
});

/** Clocks are set, at any moment by any step. */
export const clockSteps = scenario({
  happenings: (runMs) =>
    fc.array(
      fc.record({
        kind: fc.constantFrom('redis clock', 'service clock'),
        atMs: fc.integer({ min: 0, max: runMs }),
        byMs: fc.integer({ min: -100_000, max: 100_000 }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
});

/** The service changes the limit, at any moment. */
export const changingLimit = scenario({
  happenings: (runMs) =>
    fc.array(
      fc.record({
        kind: fc.constant('limit' as const),
        atMs: fc.integer({ min: 0, max: runMs }),
        limit: fc.integer({ min: 3, max: 150 }),
      }),
      { minLength: 1, maxLength: 2 },
    ),
});

/** Another consumer takes a part of the limit. */
export const shared = scenario({ othersEveryMs: fc.integer({ min: 50, max: 2_000 }) });

/**
 * A steady guard that nobody told us of, which lets more through than the limit in the long run, in windows that are
 * long beside the differences between the ways of requests.
 */
export const guarded = fc
  .record({
    base: scenario({}),
    limit: fc.integer({ min: 2, max: 10 }),
    windowMs: fc.integer({ min: 50, max: 400 }),
    routes: fc.constantFrom(['/contacts'], ['/contacts', '/conversations']),
    leastMs: fc.integer({ min: 1, max: 100 }),
    unevenMs: fc.integer({ min: 0, max: 40 }),
    workers: fc.integer({ min: 1, max: 3 }),
  })
  .filter(({ base: { service }, limit, windowMs, unevenMs }) => {
    const perMs = limit / windowMs;
    return perMs > (3 * service.limit) / service.windowMs && unevenMs < windowMs / 5;
  })
  .map(({ base, limit, windowMs, routes, leastMs, unevenMs, workers }) => ({
    ...base,
    workers,
    latencyMs: [leastMs, leastMs + unevenMs] as const,
    service: { ...base.service, guard: { routes, limit, windowMs } },
  }));
