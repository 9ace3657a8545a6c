import * as fc from 'fast-check';
import type { ServiceFacts } from './service-model.ts';

/** All that decides a run: the same scenario gives the same run. */
export interface Scenario {
  seed: number;
  runMs: number;
  /** Each in one of two processes. */
  workers: number;
  routes: readonly string[];
  /** Shortest and longest round trip, in milliseconds. */
  latencyMs: readonly [number, number];
  /** A request is not sent; is lost before or after the service counts it; or its holder dies. */
  chances: { unsent: number; dropped: number; unanswered: number; killed: number };
  service: ServiceFacts;
  /** Mean time between another app's requests, in milliseconds; 0 means no other app. */
  othersEveryMs: number;
  /** When the service changes its limit. */
  changes: readonly { atMs: number; limit: number }[];
}

const limit = fc.integer({ min: 3, max: 150 });

const facts = fc.record({
  limit,
  windowMs: fc.constantFrom(4_000, 6_000, 10_000, 60_000),
  windows: fc.constantFrom('first request', 'aligned'),
  reset: fc.constantFrom('exact', 'cut', 'rounded up'),
  remaining: fc.constantFrom('true', 'still'),
  wholeRetryAfter: fc.boolean(),
  aheadMs: fc.constantFrom(0, 90_000, -90_000),
  guard: fc.constant(undefined),
});

const latencyMs = fc
  .tuple(fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 600 }))
  .map(([least, more]) => [least, least + more] as const);

const chance = fc.constantFrom(0, 0.01, 0.05);

/** Any delay and rounding, and clocks 90 seconds off. A run lasts a few windows. */
export const calm: fc.Arbitrary<Scenario> = facts.chain((service) =>
  fc.record({
    seed: fc.nat(),
    runMs: fc.constant(Math.min(service.windowMs * 4, 90_000)),
    workers: fc.integer({ min: 1, max: 6 }),
    routes: fc.constantFrom(['/contacts'], ['/contacts', '/conversations']),
    latencyMs,
    chances: fc.constant({ unsent: 0, dropped: 0, unanswered: 0, killed: 0 }),
    service: fc.constant(service),
    othersEveryMs: fc.constant(0),
    changes: fc.constant([]),
  }),
);

/** Requests and answers get lost, and processes die. */
export const lossy = fc
  .record({
    base: calm,
    chances: fc.record({ unsent: chance, dropped: chance, unanswered: chance, killed: chance }),
  })
  .map(({ base, chances }) => ({
    ...base,
    chances,
    // The budget cannot know which lost requests the service counted.
    service: { ...base.service, remaining: 'true' as const },
  }));

/** The service changes the limit at any moment. */
export const changing = calm.chain((base) =>
  fc
    .array(fc.record({ atMs: fc.integer({ min: 0, max: base.runMs }), limit }), {
      minLength: 1,
      maxLength: 2,
    })
    .map((changes) => ({ ...base, changes })),
);

/** Another app takes a part of the limit. */
export const shared = fc
  .record({ base: calm, othersEveryMs: fc.integer({ min: 200, max: 2_000 }) })
  .map(({ base, othersEveryMs }) => ({
    ...base,
    othersEveryMs,
    service: { ...base.service, remaining: 'true' as const },
  }));

/** An unknown guard on some routes. In the long run it allows more than the limit. */
export const guarded = fc
  .record({
    base: calm,
    limit: fc.integer({ min: 2, max: 10 }),
    windowMs: fc.integer({ min: 50, max: 400 }),
    routes: fc.constantFrom(['/contacts'], ['/contacts', '/conversations']),
    leastMs: fc.integer({ min: 1, max: 100 }),
    workers: fc.integer({ min: 1, max: 3 }),
  })
  .filter(
    ({ base: { service }, limit, windowMs }) => limit / windowMs > (3 * service.limit) / service.windowMs,
  )
  .map(({ base, limit, windowMs, routes, leastMs, workers }) => ({
    ...base,
    workers,
    latencyMs: [leastMs, leastMs + 10] as const,
    service: { ...base.service, guard: { routes, limit, windowMs } },
  }));
