/** What all contenders go through at the same time. */
export interface Condition {
  title: string;
  /** By which the service holds each answer back. */
  latencyMs: number;
  /** A guard on the lists. */
  guard?: { requests: number; per_ms: number };
  /** The share of the limit that another application of the same company takes. */
  othersShare?: number;
  /** Worker processes; one by default. */
  workers?: number;
  /** By which the clock of the service is ahead. */
  clockAheadMs?: number;
  /** Every worker is killed in the middle of a window, and another one starts at once. */
  kill?: boolean;
}

const CLOCK_OFF_MS = 90_000;

export const CONDITIONS: Readonly<Record<string, Condition>> = {
  'calm-40': { title: 'calm, 40 ms a page', latencyMs: 40 },
  'calm-200': { title: 'calm, 200 ms a page', latencyMs: 200 },
  'calm-600': { title: 'calm, 600 ms a page', latencyMs: 600 },
  guard: {
    title: 'a guard of 5 requests per 100 ms, 5 ms a page',
    latencyMs: 5,
    guard: { requests: 5, per_ms: 100 },
  },
  shared: { title: 'another application takes a sixth of the limit', latencyMs: 40, othersShare: 1 / 6 },
  'workers-2': { title: 'two worker processes', latencyMs: 40, workers: 2 },
  'clock-ahead': { title: 'the service’s clock 90 s ahead', latencyMs: 40, clockAheadMs: CLOCK_OFF_MS },
  'clock-behind': { title: 'the service’s clock 90 s behind', latencyMs: 40, clockAheadMs: -CLOCK_OFF_MS },
  kill: { title: 'kill -9 in mid-window and a new start at once', latencyMs: 40, kill: true },
};
