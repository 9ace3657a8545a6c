import { describe, expect, it } from 'vitest';
import { readRateHeaders } from '../../../src/service/rate-headers.ts';
import { virtualBudget } from './virtual-budget.ts';

const LIMIT = 120;
const WINDOW_MS = 60_000;
const WINDOWS = 4;
const TRIP_MS = 10;
/** 23 seconds into a minute, and a part of one. */
const START_MS = Date.UTC(2031, 0, 1, 0, 0, 23) + 400;

/** What stands in `x-ratelimit-reset`, in seconds, for a window of the service from its start to its end. */
type Told = (startMs: number, endMs: number) => number;

const TOLD: Record<string, Told> = {
  'where it is': (_, endMs) => endMs / 1_000,
  'at its beginning': (startMs) => startMs / 1_000,
  'at its beginning, in whole seconds': (startMs) => Math.floor(startMs / 1_000),
  'at the next full hour': (startMs) => Math.ceil(startMs / 3_600_000) * 3_600,
  'at the full minute before it': (_, endMs) => Math.floor(endMs / 60_000) * 60,
  'at the full half of a minute before it': (_, endMs) => Math.floor(endMs / 30_000) * 30,
  'at the beginning of time': () => 0,
  'soon after that': () => 1_000,
  'in some centuries': () => 9_999_999_999,
};

/** A service that counts in windows which begin with their first request, refuses none, and tells an end of them. */
async function requestsAWindow(told: Told, flushAt = Number.POSITIVE_INFINITY) {
  const { budget, company, pass, flush } = virtualBudget();
  let requests = 0;
  const windows: number[] = [];
  let [now, startMs] = [START_MS, Number.NEGATIVE_INFINITY];
  const later = (ms: number) => {
    pass(ms);
    now += ms;
  };
  const answer = () => {
    if (now - startMs >= WINDOW_MS) {
      startMs = now;
      windows.push(0);
    }
    const used = (windows.pop() ?? 0) + 1;
    windows.push(used);
    if (++requests === flushAt) flush();
    const headers = {
      date: new Date(now).toUTCString(),
      'x-ratelimit-limit': String(LIMIT),
      'x-ratelimit-remaining': String(Math.max(0, LIMIT - used)),
      'x-ratelimit-reset': String(told(startMs, startMs + WINDOW_MS)),
    };
    return { answer: { rate: readRateHeaders(headers, now) } };
  };
  while (windows.length <= WINDOWS) {
    const { permit, ...rest } = await budget.acquire(company, '/contacts');
    if (permit === undefined) later('waitMs' in rest ? Math.max(rest.waitMs, 1) : 1);
    else {
      later(TRIP_MS);
      const settlement = answer();
      later(TRIP_MS);
      await budget.settle(permit, settlement);
    }
  }
  // The last one has only begun.
  return windows.slice(0, WINDOWS);
}

describe('a service that tells the end of its windows', () => {
  it.each(Object.keys(TOLD))('%s: no more than the limit in one, but for the first', async (where) => {
    const [first = 0, ...others] = await requestsAWindow(TOLD[where] ?? expect.unreachable());
    // That the end which it tells is none shows by one request behind it.
    expect(first).toBeLessThanOrEqual(LIMIT + 1);
    expect(Math.max(...others)).toBeLessThanOrEqual(LIMIT);
    expect(Math.min(first, ...others)).toBeGreaterThan(100);
  });
});

it.each([2, 3, 5, 10])(
  'a service that tells it %d seconds early, while Redis is emptied: a few more than the limit in that one',
  async (seconds) => {
    const early = (_: number, endMs: number) => Math.floor(endMs / 1_000) - seconds;
    const [first = 0, ...others] = await requestsAWindow(early, 118);
    expect(first).toBeLessThanOrEqual(LIMIT + 5);
    expect(Math.max(...others)).toBeLessThanOrEqual(LIMIT);
  },
);
