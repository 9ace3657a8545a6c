import { afterEach, expect, test, vi } from 'vitest';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { watchApp } from '../../src/sync/watch-app.ts';
import { testLogger } from '../support/test-logger.ts';

afterEach(() => {
  vi.useRealTimers();
});

test.each([
  ['that is locked is told once', new Error('locked'), ['the database cannot be written, trying on']],
  ['that a newer version has changed is not told as trouble', new NewerSchemaError(['9000-next']), []],
])('a database %s', async (_what, error, told) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const { logger, lines } = testLogger();
  const watch = watchApp({ database: () => Promise.reject(error), redis: async () => {} }, logger);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(lines.map(({ msg }) => msg)).toEqual(told);
  watch.close();
});

test.each([
  ['database', 'The app cannot write to its own database'],
  ['redis', 'The app cannot work with its own queue (Redis)'],
])('trouble with the %s is told to administrators as long as it lasts', async (part, told) => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  let isWell = true;
  const check = (name: string) => async () => {
    if (name === part && !isWell) throw new Error('away');
  };
  const watch = watchApp({ database: check('database'), redis: check('redis') }, testLogger().logger);
  const notices: unknown[] = [];
  for (isWell of [true, false, true]) {
    await vi.advanceTimersByTimeAsync(10_000);
    notices.push(watch.notice);
  }
  expect(notices).toEqual([undefined, expect.stringContaining(told), undefined]);
  watch.close();
});
