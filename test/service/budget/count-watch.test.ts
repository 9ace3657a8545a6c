import { EventEmitter } from 'node:events';
import type { Redis } from 'ioredis';
import { expect, test } from 'vitest';
import { CountWatch } from '../../../src/service/budget/count-watch.ts';
import { openBudgets } from '../../../src/service/budget/process-budgets.ts';

/** A watch in a time that passes when the test says so, on Redis' side, too. */
function begin() {
  let steadyMs = 5_000_000;
  let redisMs = 1_900_000_000_000;
  const connection = Object.assign(new EventEmitter(), {
    time: async () => [Math.floor(redisMs / 1_000), (redisMs % 1_000) * 1_000] as const,
    defineCommand: () => undefined,
  });
  const watch = new CountWatch(connection as unknown as Redis, () => steadyMs);
  const pass = (ms: number) => {
    steadyMs += ms;
    redisMs += ms;
  };
  /** @returns whether an answer that took so long, there and back, is told of no gap */
  const ask = (thereMs = 1, backMs = 1) => {
    const begun = watch.begin();
    pass(thereMs);
    const clockMs = redisMs;
    pass(backMs);
    return watch.isUnbroken(begun, clockMs);
  };
  const step = (ms: number) => {
    redisMs += ms;
  };
  return { watch, connection, pass, ask, step };
}

test.each([
  [101, true],
  [110, false],
  [60_000, false],
  [90, true],
  [-60_000, true],
])('a clock that is set by %d ms is no gap: %s', (ms, isUnbroken) => {
  const { watch, pass, ask, step } = begin();
  expect(ask()).toBe(true);
  pass(10_000);
  step(ms);
  expect(ask()).toBe(isUnbroken);
  expect(watch.gapAgoMs).toBe(isUnbroken ? 10_004 : 0);
  expect(ask()).toBe(true);
});

test('answers that take long, whichever way, and hours without one, are no gap', () => {
  const { watch, pass, ask } = begin();
  for (const [there, back] of [
    [1, 1],
    [1, 6_000],
    [1, 1],
    [6_000, 1],
    [1, 1],
    [3_000, 3_000],
  ] as const) {
    expect(ask(there, back)).toBe(true);
    pass(1_000);
  }
  pass(10 * 60 * 60_000);
  expect(ask()).toBe(true);
  expect(watch.gapAgoMs).toBeGreaterThan(10 * 60 * 60_000);
});

test('small steps add up within a minute', () => {
  const { pass, ask, step } = begin();
  const told = Array.from({ length: 4 }, () => {
    const isUnbroken = ask();
    pass(5_000);
    step(40);
    return isUnbroken;
  });
  expect([...told, ask(), ask()]).toEqual([true, true, true, false, true, true]);
  pass(61_000);
  expect(ask()).toBe(true);
});

test('a clock that drifts for hours, by less than a step in any minute, is no gap', () => {
  const { watch, pass, ask, step } = begin();
  for (let asked = 0; asked < 3 * 60 * 6; asked++) {
    expect(ask()).toBe(true);
    pass(10_000);
    step(8);
  }
  expect(watch.gapAgoMs).toBeGreaterThan(3 * 60 * 60_000);
});

test.each([
  ['it begins', () => undefined],
  [
    'it is connected to another server, whose clock is far behind',
    ({ connection, step }: ReturnType<typeof begin>) => {
      step(-100_000);
      connection.emit('ready');
    },
  ],
])('a step is seen by the first answer to who has asked for nothing since %s', async (_what, happen) => {
  const watched = begin();
  const { connection, pass, ask, step } = watched;
  await connection.time();
  happen(watched);
  await connection.time();
  pass(60 * 60_000);
  step(70_000);
  expect(ask()).toBe(false);
});

test('both budgets of a process watch together', () => {
  const { connection } = begin();
  const before = connection.listenerCount('ready');
  openBudgets(connection as unknown as Redis, 'process');
  expect(connection.listenerCount('ready')).toBe(before + 1);
});

test('a new connection is one, also for what was asked for before it', () => {
  const { watch, connection, pass, ask } = begin();
  pass(50_000);
  expect(watch.gapAgoMs).toBe(50_000);
  const begun = watch.begin();
  connection.emit('ready');
  expect(watch.gapAgoMs).toBe(0);
  expect(watch.isUnbroken(begun, 1_900_000_050_000)).toBe(false);
  expect(ask()).toBe(true);
});
