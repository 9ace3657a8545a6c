import { expect, it } from 'vitest';
import { PaceMeter } from '../../src/web/pace-meter.ts';
import { instanceStatus, listStatus } from './status-fixtures.ts';

function running(records: number) {
  return instanceStatus({ resources: { contacts: listStatus({ state: 'running', records }) } });
}

it('tells records a second over the last seconds', () => {
  const meter = new PaceMeter();
  expect(meter.observe(running(1_000), 0).contacts).toBeUndefined();
  expect(meter.observe(running(1_500), 1_000).contacts).toBe(500);
  expect(meter.observe(running(1_500), 2_000).contacts).toBe(250);
  // Seven seconds on, the first samples no longer count.
  expect(meter.observe(running(1_500), 6_500).contacts).toBe(0);
});

it('starts over with a new run, and counts from the end of a wait', () => {
  const meter = new PaceMeter();
  meter.observe(running(1_000), 0);
  expect(meter.observe(running(100), 1_000).contacts).toBeUndefined();
  expect(meter.observe(running(300), 2_000).contacts).toBe(200);
  meter.observe(
    instanceStatus({ resources: { contacts: listStatus({ state: 'waiting', records: 4_000 }) } }),
    3_000,
  );
  expect(meter.observe(running(4_500), 4_000).contacts).toBe(500);
});
