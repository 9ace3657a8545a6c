import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { LostDatabaseError } from '../../src/store/database.ts';
import { watchApp } from '../../src/sync/watch-app.ts';
import { testLogger } from '../support/test-logger.ts';

beforeEach(() => void vi.useFakeTimers({ toFake: ['setTimeout'] }));
afterEach(() => void vi.useRealTimers());
const nothing = async () => undefined;
const fail = () => {
  throw new Error('The database is not lost.');
};

test.each([
  ['store', 'the database'],
  ['redis', 'Redis'],
])('an outage of "%s" shows while it lasts, and is logged once', async (part, name) => {
  const { logger, lines } = testLogger();
  let isDown = false;
  const check = (checked: string) => async () => {
    if (checked === part && isDown) throw new Error('away');
  };
  const watch = watchApp({ store: check('store'), redis: check('redis') }, nothing, logger, fail);
  const seen: unknown[] = [];
  for (isDown of [false, true, false]) {
    await vi.advanceTimersByTimeAsync(20_000);
    seen.push(watch.failing);
  }
  expect(seen).toEqual([undefined, part, undefined]);
  expect(lines.map(({ level, msg }) => `${level}: ${msg}`)).toEqual([
    `error: ${name} fails; the app keeps trying`,
    `info: ${name} works again`,
  ]);
  watch.close();
});

test('workers are missing when two counts in a row find none', async () => {
  const counts = [0, 1, 0, 0, undefined, 0, 2];
  const list = async () => {
    const count = counts.shift();
    return count === undefined ? undefined : Array(count);
  };
  const watch = watchApp({ store: nothing, redis: nothing }, list, testLogger().logger, fail);
  const seen: unknown[] = [];
  for (let left = counts.length; left > 0; left--) {
    await vi.advanceTimersByTimeAsync(3_000);
    seen.push([watch.workers, watch.areWorkersMissing]);
  }
  expect(seen).toEqual([
    [0, false],
    [1, false],
    [0, false],
    [0, true],
    [undefined, false],
    [0, false],
    [2, false],
  ]);
  watch.close();
});

test('the process hears that its database is lost', async () => {
  const lost: string[] = [];
  const store = async () => {
    throw new LostDatabaseError('The file is gone.');
  };
  const onLost = ({ message }: Error) => lost.push(message);
  const watch = watchApp({ store, redis: nothing }, nothing, testLogger().logger, onLost);
  await vi.advanceTimersByTimeAsync(5_000);
  watch.close();
  expect(lost).toEqual(['The file is gone.']);
});
