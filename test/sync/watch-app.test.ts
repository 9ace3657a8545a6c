import { afterEach, expect, test, vi } from 'vitest';
import { watchApp } from '../../src/sync/watch-app.ts';
import { testLogger } from '../support/test-logger.ts';

afterEach(() => void vi.useRealTimers());

test.each([
  ['store', 'the database'],
  ['redis', 'Redis'],
])('trouble of the kind "%s" is told as long as it lasts, and logged once', async (part, name) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { logger, lines } = testLogger();
  let isWell = true;
  const check = (checked: string) => async () => {
    if (checked === part && !isWell) throw new Error('away');
  };
  const watch = watchApp({ store: check('store'), redis: check('redis') }, logger);
  const told: unknown[] = [];
  for (isWell of [true, false, true]) {
    await vi.advanceTimersByTimeAsync(20_000);
    told.push(watch.trouble);
  }
  expect(told).toEqual([undefined, part, undefined]);
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    `error: ${name} cannot be worked with, trying on`,
    `info: ${name} can be worked with again`,
  ]);
  watch.close();
});

test('a check that hangs is not overtaken by another', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let checks = 0;
  const hang = () => {
    checks++;
    return new Promise<void>(() => undefined);
  };
  const watch = watchApp({ store: hang, redis: async () => undefined }, testLogger().logger);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(checks).toBe(1);
  watch.close();
});
