import { afterEach, expect, test, vi } from 'vitest';
import { NewerSchemaError } from '../../src/store/newer-schema.ts';
import { watchStore } from '../../src/store/watch-store.ts';
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
  const watch = watchStore(() => Promise.reject(error), logger);
  await vi.advanceTimersByTimeAsync(20_000);
  expect(lines.map(({ msg }) => msg)).toEqual(told);
  watch.close();
});
