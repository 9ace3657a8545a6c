/** What a row of the bench goes through. */
export interface Condition {
  name: string;
  title: string;
  /** By which the service holds each answer back. */
  latencyMs: number;
  /** A guard on the lists: so many requests per so many milliseconds. */
  guard?: { requests: number; perMs: number };
  /** Another application of the same company takes this share of the limit. */
  othersShare?: number;
  /** Worker processes; one by default. */
  workers?: number;
  /** How far the service's clock is ahead of ours. */
  clockAheadMs?: number;
  /** Each worker is killed in the middle of a window, and another one started at once. */
  kill?: boolean;
  /** The window of the limit, and how many whole ones are looked at. */
  windowMs?: number;
  windows?: number;
  /** Pages that are timed; 300 by default. */
  timedPages?: number;
}

export const TIMED_PAGES = 300;

const LATENCY_MS = 40;
const CLOCK_OFF_MS = 90_000;

/** The rows of the bench, by what they go through. */
export const CONDITIONS: readonly Condition[] = [
  { name: 'calm-40', title: 'calm, 40 ms a page', latencyMs: 40 },
  { name: 'calm-200', title: 'calm, 200 ms a page', latencyMs: 200 },
  // Two cursors get 100 pages in half a minute then.
  { name: 'calm-600', title: 'calm, 600 ms a page', latencyMs: 600, timedPages: 100 },
  {
    name: 'guard',
    title: 'a guard of 5 requests per 100 ms, 5 ms a page',
    latencyMs: 5,
    guard: { requests: 5, perMs: 100 },
  },
  {
    name: 'shared',
    title: 'another application takes a sixth of the limit, 40 ms a page',
    latencyMs: LATENCY_MS,
    othersShare: 1 / 6,
  },
  { name: 'workers-2', title: 'two worker processes, 40 ms a page', latencyMs: LATENCY_MS, workers: 2 },
  {
    name: 'clock-ahead',
    title: 'the service’s clock 90 s ahead, 40 ms a page',
    latencyMs: LATENCY_MS,
    clockAheadMs: CLOCK_OFF_MS,
  },
  {
    name: 'clock-behind',
    title: 'the service’s clock 90 s behind, 40 ms a page',
    latencyMs: LATENCY_MS,
    clockAheadMs: -CLOCK_OFF_MS,
  },
  {
    name: 'kill',
    title: 'kill -9 in mid-window and a new start at once, 40 ms a page',
    latencyMs: LATENCY_MS,
    kill: true,
    // It takes seconds until the jobs of a killed worker are found.
    windowMs: 30_000,
    windows: 2,
  },
];
