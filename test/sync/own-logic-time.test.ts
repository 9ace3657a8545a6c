import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test } from 'vitest';
import { OwnLogicTime, OwnLogicTimeout } from '../../src/sync/own-logic-time.ts';

const LIMIT_MS = 30;
const LONG_MS = 60_000;
const never = new AbortController().signal;
const hang = () => new Promise<void>(() => {});

test('what is done in time is done, and what throws throws its own', async () => {
  await new OwnLogicTime(LONG_MS, never).limit(async () => {});
  await expect(
    new OwnLogicTime(LONG_MS, never).limit(() => Promise.reject(new Error('own'))),
  ).rejects.toThrow('own');
});

test('what takes too long is left to itself, also when it fails later', async () => {
  const later = Promise.withResolvers<void>();
  await expect(new OwnLogicTime(LIMIT_MS, never).limit(() => later.promise)).rejects.toThrow(OwnLogicTimeout);
  // Nobody waits for it any more: that must not end the process.
  later.reject(new Error('too late'));
  await othersTurn();
});

test('its signal is aborted then, whenever it is asked for; and when the process ends', async () => {
  const time = new OwnLogicTime(LIMIT_MS, never);
  const { signal } = time;
  expect(signal.aborted).toBe(false);
  await expect(time.limit(hang)).rejects.toThrow('0.03 s');
  expect(signal.reason).toBeInstanceOf(OwnLogicTimeout);

  const late = new OwnLogicTime(LIMIT_MS, never);
  await expect(late.limit(hang)).rejects.toThrow(OwnLogicTimeout);
  expect(late.signal.aborted).toBe(true);

  const shutdown = new AbortController();
  const ended = new OwnLogicTime(LONG_MS, shutdown.signal).signal;
  shutdown.abort();
  expect(ended.aborted).toBe(true);
});

test('time stands still in calls of the service, several at once as well, and goes on behind them', async () => {
  const time = new OwnLogicTime(LIMIT_MS, never);
  let wasBehind = false;
  const work = time.limit(async () => {
    await Promise.all([
      time.around(() => sleep(2 * LIMIT_MS)),
      time.around(() => sleep(3 * LIMIT_MS)).catch(() => undefined),
      time.around(() => Promise.reject(new Error('refused'))).catch(() => undefined),
    ]);
    wasBehind = true;
    await hang();
  });
  await expect(work).rejects.toThrow(OwnLogicTimeout);
  expect(wasBehind).toBe(true);
});
