import type * as fc from 'fast-check';
import type { Scenario } from './scenario.ts';
import * as scenarios from './scenario.ts';
import { type Observed, simulate } from './simulation.ts';

/** A second of `Date`, and the pause before a process asks again while an answer is under way. */
const CUT_MS = 1_000;
const ASKING_MS = 30;
/** How long a probe whose holder was killed holds up the others. */
const PROBE_MS = 2_000;

/**
 * How long nothing may be under way although the service would count a request: what whole seconds of the service's
 * headers hide, an answer's way, and a pause. `x-ratelimit-reset` in whole seconds may have been cut, so a second is
 * added to it; rounded up, it is a second too many.
 */
function hiddenMs({ service, latencyMs }: Scenario): number {
  const whole = service.reset !== 'exact' || service.windows === 'aligned' ? 1_000 : 0;
  const roundedUp = service.reset === 'rounded up' ? 1_000 : 0;
  return CUT_MS + whole + roundedUp + latencyMs[1] + ASKING_MS;
}

/** What a run of a scenario may show at most. */
interface Most {
  refused: number;
  idleMs: number;
  guarded?: number;
}

/** A property: what is tried, and what may come of it. */
export interface Property {
  name: string;
  scenarios: fc.Arbitrary<Scenario>;
  most: (scenario: Scenario) => Most;
}

export const PROPERTIES: readonly Property[] = [
  {
    name: 'any delay, rounding and clock: no request above the limit, and little idle time',
    scenarios: scenarios.calm,
    most: (scenario) => ({ refused: 0, idleMs: hiddenMs(scenario) }),
  },
  {
    name: 'losses and killed processes: no request above the limit, and a probe’s idle time',
    scenarios: scenarios.lossy,
    most: (scenario) => ({
      refused: 0,
      idleMs: hiddenMs(scenario) + Math.max(PROBE_MS, 4 * scenario.latencyMs[1]),
    }),
  },
  {
    // Requests under way when the limit falls are refused. Nobody hears of a higher one while the lower one is used up.
    name: 'a limit that changes: only requests under way are refused',
    scenarios: scenarios.changing,
    most: (scenario) => ({
      refused: scenario.changes.length * scenario.workers,
      idleMs: scenario.service.windowMs + hiddenMs(scenario),
    }),
  },
  {
    // Between the last answer and our next request the other consumer may send more than the one that is held back.
    name: 'another consumer: a few refusals a window at most, and no idle window',
    scenarios: scenarios.shared,
    most: (scenario) => ({
      refused: 2 * Math.ceil(scenario.runMs / scenario.service.windowMs + 1),
      idleMs: scenario.service.windowMs + hiddenMs(scenario),
    }),
  },
  {
    name: 'an unknown guard: refused by it a few times at most, and the limit holds',
    scenarios: scenarios.guarded,
    most: (scenario) => ({ refused: 0, guarded: 4 * scenario.workers, idleMs: Infinity }),
  },
];

/** Runs one scenario of a property. @throws Error that says what is wrong, and with which scenario */
export async function check({ most }: Property, scenario: Scenario): Promise<Observed> {
  const observed = await simulate(scenario);
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
