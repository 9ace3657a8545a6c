import { afterEach, expect, test, vi } from 'vitest';
import { watchApp } from '../../src/sync/watch-app.ts';
import { testLogger } from '../support/test-logger.ts';

afterEach(() => void vi.useRealTimers());

test.each([
  ['database', 'the database', 'The app cannot write to its own database'],
  ['redis', 'Redis', 'The app cannot work with its own queue (Redis)'],
])('trouble with the %s is told as long as it lasts, and logged once', async (part, name, told) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { logger, lines } = testLogger();
  let isWell = true;
  const check = (checked: string) => async () => {
    if (checked === part && !isWell) throw new Error('away');
  };
  const watch = watchApp({ database: check('database'), redis: check('redis') }, logger);
  const notices: unknown[] = [];
  for (isWell of [true, false, true]) {
    await vi.advanceTimersByTimeAsync(20_000);
    notices.push(watch.notice);
  }
  expect(notices).toEqual([undefined, expect.stringContaining(told), undefined]);
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
  const watch = watchApp({ database: hang, redis: async () => undefined }, testLogger().logger);
  await vi.advanceTimersByTimeAsync(60_000);
  expect(checks).toBe(1);
  watch.close();
});
