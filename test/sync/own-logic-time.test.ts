import { getEventListeners } from 'node:events';
import { setImmediate as othersTurn, setTimeout as sleep } from 'node:timers/promises';
import { expect, test, vi } from 'vitest';
import { ServiceError } from '../../src/client/errors.ts';
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

test('when the work throws, its signal is aborted: what else it has begun is begun anew with the next try', async () => {
  const time = new OwnLogicTime(LONG_MS, never);
  const { signal } = time;
  await expect(time.limit(() => Promise.reject(new Error('one of many')))).rejects.toThrow('one of many');
  expect(signal.reason).toMatchObject({ message: 'one of many' });
});

test.each([undefined, null])(
  'when the work throws %s, a signal that is asked for afterwards is aborted, too',
  async (thrown) => {
    const time = new OwnLogicTime(LONG_MS, never);
    await expect(time.limit(() => Promise.reject(thrown))).rejects.toBe(thrown);
    expect(time.signal.aborted).toBe(true);
  },
);

test('when it is done, nothing of its signal is kept, and the end of the process is not passed on', async () => {
  const shutdown = new AbortController();
  const listener = vi.fn();
  const time = new OwnLogicTime(LONG_MS, shutdown.signal);
  await time.limit(async () => time.signal.addEventListener('abort', listener));
  const unasked = new OwnLogicTime(LONG_MS, shutdown.signal);
  await unasked.limit(async () => {});
  unasked.signal.addEventListener('abort', listener);
  expect(getEventListeners(shutdown.signal, 'abort')).toEqual([]);
  shutdown.abort();
  expect(listener).not.toHaveBeenCalled();
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
  const ended = new OwnLogicTime(LONG_MS, shutdown.signal);
  const asked: boolean[] = [];
  await ended.limit(async () => {
    const { signal: atWork } = ended;
    asked.push(atWork.aborted);
    shutdown.abort();
    asked.push(atWork.aborted);
  });
  expect(asked).toEqual([false, true]);
  expect(new OwnLogicTime(LONG_MS, shutdown.signal).signal.aborted).toBe(true);
});

test('when the process ends, what comes to its end within two seconds is done; all else is left to itself then', async () => {
  vi.useFakeTimers();
  try {
    const reason = new Error('the process ends');
    const shutdown = new AbortController();
    const start = (work: () => Promise<void>) => new OwnLogicTime(LONG_MS, shutdown.signal).limit(work);
    const ends = [start(hang), start(() => sleepFake(3_500)), start(() => sleepFake(2_500))];
    const ended = Promise.allSettled(ends);
    await vi.advanceTimersByTimeAsync(1_000);
    shutdown.abort(reason);
    // One that begins when the process ends already.
    const late = expect(start(hang)).rejects.toBe(reason);
    const settled: unknown[] = [];
    for (const end of ends) end.catch((error) => settled.push(error));
    await vi.advanceTimersByTimeAsync(1_900);
    expect(settled).toEqual([]);
    await vi.advanceTimersByTimeAsync(100);
    expect(await ended).toEqual([
      { status: 'rejected', reason },
      { status: 'rejected', reason },
      { status: 'fulfilled', value: undefined },
    ]);
    await late;
    // Nothing of ours: that of the work which is left to itself.
    expect(vi.getTimerCount()).toBe(1);
  } finally {
    vi.useRealTimers();
  }
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

test('work that takes longer than a window of the limit is told, once, also where each call is short; not what ends before', async () => {
  vi.useFakeTimers();
  try {
    let told = 0;
    const time = () => new OwnLogicTime(LONG_MS, never, () => told++);
    const [soon, calling, alone] = [time(), time(), time()];
    const ends = [
      soon.limit(() => soon.around(() => sleepFake(69_000))),
      calling.limit(async () => {
        for (let count = 0; count < 20; count++) await calling.around(() => sleepFake(10_000));
      }),
    ];
    await vi.advanceTimersByTimeAsync(69_900);
    expect(told).toBe(0);
    await vi.advanceTimersByTimeAsync(400_000);
    await Promise.all(ends);
    expect(told).toBe(1);
    const hanging = expect(alone.limit(hang)).rejects.toThrow('60 s of its own');
    await vi.advanceTimersByTimeAsync(400_000);
    await hanging;
    expect(told).toBe(1);
  } finally {
    vi.useRealTimers();
  }
});

test('own logic that calls again and again with good answers is ended, and what it calls then broken off', async () => {
  vi.useFakeTimers();
  try {
    let calls = 0;
    const time = new OwnLogicTime(LONG_MS, never);
    const { signal } = time;
    const polling = time.limit(async () => {
      for (; !signal.aborted; calls++) await time.around(() => sleepFake(1_000));
    });
    const ended = expect(polling).rejects.toThrow(
      'not done after 31 minutes, its calls of the service included',
    );
    await vi.advanceTimersByTimeAsync(30 * 60_000);
    expect(signal.aborted).toBe(false);
    await vi.advanceTimersByTimeAsync(2 * 60_000);
    await ended;
    expect(signal.reason).toBeInstanceOf(OwnLogicTimeout);
    expect(calls).toBe(31 * 60);
  } finally {
    vi.useRealTimers();
  }
});

test('when it is over, own logic that heeds no error and calls on and on leaves others their turn', async () => {
  const shutdown = new AbortController();
  const callsAfter = async (time: OwnLogicTime, end: () => Promise<void>) => {
    const { signal } = time;
    let calls = 0;
    let isOver = false;
    const call = () => time.around(async () => signal.throwIfAborted()).catch(() => undefined);
    const work = time.limit(async () => {
      await end();
      while (!isOver && ++calls < 100_000) await call();
    });
    work.catch(() => undefined);
    await end();
    for (let turns = 0; turns < 10; turns++) await othersTurn();
    isOver = true;
    return calls;
  };
  const late = new OwnLogicTime(LIMIT_MS, never);
  expect(await callsAfter(late, () => sleep(3 * LIMIT_MS))).toBeLessThan(100);
  const ended = new OwnLogicTime(LONG_MS, shutdown.signal);
  expect(await callsAfter(ended, async () => shutdown.abort())).toBeLessThan(100);
});

test('own logic that calls again and again while every call fails is ended, with the last reason; refusals are answers', async () => {
  vi.useFakeTimers({ toFake: ['setTimeout', 'clearTimeout', 'performance'] });
  try {
    const failing = (error: Error) => async () => {
      await sleepFake(60_000);
      throw error;
    };
    const again = (error: Error, times: number) => {
      const time = new OwnLogicTime(LONG_MS, never);
      return time.limit(async () => {
        for (let count = 0; count < times; count++) await time.around(failing(error)).catch(() => undefined);
      });
    };
    const trouble = again(new ServiceError('wait', 'It is down.'), Number.POSITIVE_INFINITY);
    const ended = expect(trouble).rejects.toThrow('have failed for 15 minutes, the last one: It is down.');
    const refused = again(new ServiceError('give_up', 'Not found.'), 25);
    for (let minute = 0; minute < 40; minute++) {
      await vi.advanceTimersByTimeAsync(60_000);
      // A call that fails leaves others their turn.
      await othersTurn();
    }
    await ended;
    await refused;
  } finally {
    vi.useRealTimers();
  }
});

function sleepFake(ms: number): Promise<void> {
  return new Promise((resolve) => setTimeout(resolve, ms));
}
