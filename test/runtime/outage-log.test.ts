import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { OutageLog } from '../../src/runtime/outage-log.ts';
import { testLogger } from '../support/test-logger.ts';

const AWAY = 'Redis cannot be reached, trying on';
const BACK = 'Redis is reachable again';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

function begin() {
  const { logger, lines } = testLogger();
  const told = () =>
    lines.splice(0).map(({ level, msg, err }) => [level, msg, (err as Error | undefined)?.message]);
  return { outage: new OutageLog('general', logger), told };
}

const replied = (message: string) => Object.assign(new Error(message), { name: 'ReplyError' });

test('a connection that was only ended is told of as trouble after a second, once', () => {
  const { outage, told } = begin();
  outage.tellSoon();
  vi.advanceTimersByTime(999);
  outage.tellSoon();
  expect(told()).toEqual([]);
  vi.advanceTimersByTime(1);
  outage.tellSoon();
  vi.advanceTimersByTime(5_000);
  expect(told()).toEqual([['warn', AWAY, undefined]]);
  outage.end();
  expect(told()).toEqual([['info', BACK, undefined]]);
});

test('one that is back before leaves the line of that alone', () => {
  const { outage, told } = begin();
  outage.tellSoon();
  outage.end();
  vi.advanceTimersByTime(5_000);
  expect(told()).toEqual([['info', BACK, undefined]]);
  outage.end();
  expect(told()).toEqual([]);
});

test('one that we ended ourselves is none', () => {
  const { outage, told } = begin();
  outage.tellSoon();
  outage.forget();
  vi.advanceTimersByTime(5_000);
  expect(told()).toEqual([]);
});

test('a reason that comes meanwhile is told at once, and not again; each refusal of Redis once', () => {
  const { outage, told } = begin();
  for (let attempt = 0; attempt < 3; attempt++) {
    outage.tellSoon();
    outage.tell(new Error(`connect ECONNREFUSED, attempt ${attempt}`));
    vi.advanceTimersByTime(5_000);
  }
  for (const word of ['LOADING', 'WRONGPASS', 'LOADING', 'WRONGPASS'])
    outage.tell(replied(`${word} as it says`));
  outage.tell(new Error('closed'));
  const away = ['connect ECONNREFUSED, attempt 0', 'LOADING as it says', 'WRONGPASS as it says'];
  expect(told()).toEqual(away.map((message) => ['warn', AWAY, message]));
  outage.end();
  outage.tell(replied('WRONGPASS as it says'));
  expect(told()).toEqual([
    ['info', BACK, undefined],
    ['warn', AWAY, 'WRONGPASS as it says'],
  ]);
});

test('a reason that comes after an end without one was told is told, once', () => {
  const { outage, told } = begin();
  outage.tellSoon();
  vi.advanceTimersByTime(1_000);
  for (let attempt = 0; attempt < 2; attempt++) {
    outage.tellSoon();
    outage.tell(new Error('connect ETIMEDOUT'));
    vi.advanceTimersByTime(5_000);
  }
  expect(told()).toEqual([
    ['warn', AWAY, undefined],
    ['warn', AWAY, 'connect ETIMEDOUT'],
  ]);
});
