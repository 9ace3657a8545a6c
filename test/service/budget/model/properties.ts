import type * as fc from 'fast-check';
import { WINDOW_MS } from '../../../../src/contract/limits.ts';
import type { Scenario } from './scenario.ts';
import * as scenarios from './scenario.ts';
import { type Observed, simulate } from './simulation.ts';

/** A second of `Date`, and the longest pause before a process asks again while an answer is under way. */
const CUT_MS = 1_000;
const ASKING_MS = 60;
/** How long a probe whose holder is dead holds up the others, in ms, or four usual answers. */
const PROBE_PATIENCE_MS = 2_000;

/**
 * How long nothing may be under way although the service would count a request: what whole seconds of the service's
 * headers hide, an answer's way, and a pause. `x-ratelimit-reset` in whole seconds may have been cut, so a second is
 * added to it; if it was rounded up, that is a second too many.
 */
function hiddenMs({ service, latencyMs }: Scenario): number {
  const whole = service.reset !== 'exact' || service.windows === 'aligned' ? 1_000 : 0;
  const roundedUp = service.reset === 'rounded up' ? 1_000 : 0;
  return CUT_MS + whole + roundedUp + latencyMs[1] + ASKING_MS;
}

function refused(observed: Observed, by: 'limit' | 'guard'): number {
  return observed.sent.filter(({ outcome }) => outcome === by).length;
}

function atMost(what: string, is: number, most: number): string[] {
  return is > most ? [`${what}: ${Math.round(is)}, at most ${Math.round(most)} expected`] : [];
}

function onOurOwn(scenario: Scenario, observed: Observed): string[] {
  return [
    ...atMost('refused by the limit', refused(observed, 'limit'), 0),
    ...atMost('idle, in ms', observed.longestIdleMs, scenario.service.windowMs + hiddenMs(scenario)),
  ];
}

/** A property: what is tried, and what is wrong with a run of it. */
export interface Property {
  name: string;
  scenarios: fc.Arbitrary<Scenario>;
  faults: (scenario: Scenario, observed: Observed) => string[];
}

export const PROPERTIES: readonly Property[] = [
  {
    name: 'any delays and rounding: none above the limit, and none idle for longer than the rounding hides',
    scenarios: scenarios.calm,
    faults: (scenario, observed) => [
      ...atMost('refused by the limit', refused(observed, 'limit'), 0),
      ...atMost('idle, in ms', observed.longestIdleMs, hiddenMs(scenario)),
    ],
  },
  {
    // On our own count we cannot know when the service's window begins: any of that length holds no more than the limit.
    name: 'whatever the service says is left: none above the limit, and idle for a window at most',
    scenarios: scenarios.misleading,
    faults: onOurOwn,
  },
  {
    name: 'an end that moves on with every answer, and a rest that does not fall: none above the limit, and idle for a window at most',
    scenarios: scenarios.moving,
    faults: onOurOwn,
  },
  {
    name: 'a limit of the customer’s own, which others use: none above ours, and idle for a window at most',
    scenarios: scenarios.anothers,
    faults: onOurOwn,
  },
  {
    // At the first end that it tells, two begin what they take for a new window, and one place is free.
    name: 'a window that slides: one refused until that is known, and idle for a window at most',
    scenarios: scenarios.sliding,
    faults: (scenario, observed) => [
      ...atMost('refused by the limit', refused(observed, 'limit'), 1),
      ...atMost('idle, in ms', observed.longestIdleMs, scenario.service.windowMs + hiddenMs(scenario)),
    ],
  },
  {
    // In the first window the end is told too early: a few begin what they take for the next one. In the second one goes.
    // That shows that it is no accident. Where `Date` is after the window's end, nothing tells of that end.
    name: '`Date` ahead of the limit’s clock: refusals in two windows, then none, and idle for a window at most',
    scenarios: scenarios.skewed,
    faults: (scenario, observed) => [
      ...atMost('refused by the limit', refused(observed, 'limit'), scenario.workers + 3),
      ...atMost('idle, in ms', observed.longestIdleMs, scenario.service.windowMs + hiddenMs(scenario)),
    ],
  },
  {
    // What the budget must take for spent, as nobody knows, is not counted as allowed.
    name: 'lost requests, lost answers and dead holders: none above the limit, and idle only as long as a probe may be dead',
    scenarios: scenarios.lossy,
    faults: (scenario, observed) => [
      ...atMost('refused by the limit', refused(observed, 'limit'), 0),
      ...atMost(
        'idle, in ms',
        observed.longestIdleMs,
        hiddenMs(scenario) + Math.max(PROBE_PATIENCE_MS, 4 * scenario.latencyMs[1]),
      ),
    ],
  },
  {
    // A clock that was set makes us take a window for over that is not: one request finds out. Or it is over and we
    // do not know: if no permit is left, nobody asks until the end that was told, and Redis' clock may show that twice.
    // With answers from before and after, it may look as if windows took turns: then our own count of a contract's decides.
    name: 'clocks that are set: one refusal each at most, and idle until the end that was told at most',
    scenarios: scenarios.clockSteps,
    faults: (scenario, observed) => [
      ...atMost('refused by the limit', refused(observed, 'limit'), scenario.happenings.length),
      ...atMost(
        'idle, in ms',
        observed.longestIdleMs,
        Math.max(2 * scenario.service.windowMs, WINDOW_MS) + hiddenMs(scenario),
      ),
    ],
  },
  {
    // Who is on the way when the limit falls is refused. Nobody hears of a higher one once the lower one is used up.
    name: 'a limit that changes: only what was under way is refused, and idle until the end of the window at most',
    scenarios: scenarios.changingLimit,
    faults: (scenario, observed) => [
      ...atMost(
        'refused by the limit',
        refused(observed, 'limit'),
        scenario.happenings.length * scenario.workers,
      ),
      ...atMost('idle, in ms', observed.longestIdleMs, scenario.service.windowMs + hiddenMs(scenario)),
    ],
  },
  {
    name: 'a guard that nobody knew of: learned by the first refusals, and the limit holds as ever',
    scenarios: scenarios.guarded,
    faults: (scenario, observed) => {
      const refusedAt = observed.sent.flatMap((one) => (one.outcome === 'guard' ? [one.countedAt ?? 0] : []));
      // Whoever was on the way together is refused together: so many, and once more.
      return [
        ...atMost('refused by the limit', refused(observed, 'limit'), 0),
        ...atMost('refused by the guard', refusedAt.length, 2 * scenario.workers),
      ];
    },
  },
];

/** Runs one scenario of a property. @throws Error that says what is wrong, and with which scenario */
export async function check(property: Property, scenario: Scenario): Promise<Observed> {
  const observed = await simulate(scenario);
  const faults = property.faults(scenario, observed);
  if (faults.length > 0) throw new Error(`${faults.join('; ')}\nin ${JSON.stringify(scenario)}`);
  return observed;
}
