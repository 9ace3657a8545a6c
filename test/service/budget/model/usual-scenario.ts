import { OTHER_ROUTE, ROUTE } from '../rate.ts';
import type { Scenario } from './scenario.ts';

/** One company, two cursors, 120 requests in a window of 6 s, pages of 40 ms: the bench's calm case. */
export const USUAL_SCENARIO: Scenario = {
  seed: 1,
  runMs: 30_000,
  workers: 2,
  routes: [ROUTE, OTHER_ROUTE],
  latencyMs: [30, 50],
  chances: { unsent: 0, dropped: 0, unanswered: 0, crashed: 0, late: 0 },
  service: {
    limit: 120,
    windowMs: 6_000,
    windows: 'first request',
    reset: 'exact',
    remaining: 'true',
    wholeRetryAfter: false,
    aheadMs: 7_300,
    dateAheadMs: 0,
    guard: undefined,
  },
  othersEveryMs: 0,
  happenings: [],
};
