import { expect, test } from 'vitest';
import { SlotWaits } from '../../src/sync/slot-waits.ts';

const RUN = { instanceId: 'ins_1', resource: 'contacts' };
const OTHER = { instanceId: 'ins_1', resource: 'conversations' };
const MINUTE_MS = 60_000;

test('a run that is granted its request at once has not waited', () => {
  expect(new SlotWaits().end(RUN, 1_000)).toBe(0);
});

test('a wait counts from the first question, over the delays of its job', () => {
  const waits = new SlotWaits();
  waits.wait(RUN, 31_000, 1_000);
  waits.wait(RUN, 31_500, 31_000);
  expect(waits.end(OTHER, 31_500)).toBe(0);
  expect(waits.end(RUN, 31_500)).toBe(30_500);
  expect(waits.end(RUN, 40_000)).toBe(0);
});

test('a wait that came to its end in another process is forgotten', () => {
  const waits = new SlotWaits();
  waits.wait(RUN, 2_000, 1_000);
  expect(waits.end(RUN, 2_000 + 10 * MINUTE_MS)).toBe(0);
  waits.wait(RUN, 20 * MINUTE_MS, 19 * MINUTE_MS);
  expect(waits.end(RUN, 20 * MINUTE_MS)).toBe(MINUTE_MS);
});
