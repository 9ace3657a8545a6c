import type * as fc from 'fast-check';
import type { Redis } from 'ioredis';
import type { Scenario } from './scenario.ts';
import * as scenarios from './scenario.ts';
import { type Observed, simulate } from './simulation.ts';

/** The fraction of a second that `Date` lacks, and the pause before the next try. */
const CUT_MS = 1_000;
const ASKING_MS = 30;
/** How long the others wait for a probe whose holder died. */
const PROBE_MS = 2_000;

/**
 * How long the budget may be idle because headers have whole seconds. It adds a second to `x-ratelimit-reset`, which may
 * be cut. If it was rounded up, that is a second too many.
 */
function unknownMs({ service, latencyMs }: Scenario): number {
  const whole = service.reset !== 'exact' || service.windows === 'aligned' ? 1_000 : 0;
  const roundedUp = service.reset === 'rounded up' ? 1_000 : 0;
  return CUT_MS + whole + roundedUp + latencyMs[1] + ASKING_MS;
}

/** The most that a run may show. */
interface Most {
  refused: number;
  idleMs: number;
  guarded?: number;
}

/** A kind of scenario, and the most that its runs may show. */
export interface Property {
  name: string;
  scenarios: fc.Arbitrary<Scenario>;
  most: (scenario: Scenario) => Most;
}

export const PROPERTIES: readonly Property[] = [
  {
    name: 'with any delay, rounding and clock, nothing is refused and little time is idle',
    scenarios: scenarios.calm,
    most: (scenario) => ({ refused: 0, idleMs: unknownMs(scenario) }),
  },
  {
    name: 'with losses and killed processes, nothing is refused',
    scenarios: scenarios.lossy,
    most: (scenario) => ({
      refused: 0,
      idleMs: unknownMs(scenario) + Math.max(PROBE_MS, 4 * scenario.latencyMs[1]),
    }),
  },
  {
    // A raised limit shows only in the next window if the lower one is used up.
    name: 'when the limit changes, only requests in flight are refused',
    scenarios: scenarios.changing,
    most: (scenario) => ({
      refused: scenario.changes.length * scenario.workers,
      idleMs: scenario.service.windowMs + unknownMs(scenario),
    }),
  },
  {
    // Between our last answer and our next request, the other app may send more than the one that is held back.
    name: 'with another app on the limit, a window has two refusals at most',
    scenarios: scenarios.shared,
    most: (scenario) => ({
      refused: 2 * Math.ceil(scenario.runMs / scenario.service.windowMs + 1),
      idleMs: scenario.service.windowMs + unknownMs(scenario),
    }),
  },
  {
    name: 'an unknown guard refuses a few times, and the limit holds',
    scenarios: scenarios.guarded,
    most: (scenario) => ({ refused: 0, guarded: 4 * scenario.workers, idleMs: Infinity }),
  },
];

/** Runs one scenario. @throws Error with what is wrong, and the scenario */
export async function check(redis: Redis, { most }: Property, scenario: Scenario): Promise<Observed> {
  const observed = await simulate(redis, scenario);
  const { refused, idleMs, guarded = 0 } = most(scenario);
  const faults = [
    ...atMost('refused by the limit', observed.verdicts.limit, refused),
    ...atMost('refused by the guard', observed.verdicts.guard, guarded),
    ...atMost('idle, in ms', observed.longestIdleMs, idleMs),
  ];
  if (faults.length > 0) throw new Error(`${faults.join('; ')}\nin ${JSON.stringify(scenario)}`);
  return observed;
}

function atMost(what: string, is: number, most: number): string[] {
  return is > most ? [`${what}: ${Math.round(is)}, at most ${Math.round(most)} expected`] : [];
}
