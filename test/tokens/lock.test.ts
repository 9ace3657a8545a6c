import { setImmediate as turn } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { afterAll, beforeAll, expect, test, vi } from 'vitest';
import { RedisLock } from '../../src/tokens/lock.ts';
import { connectThroughGate } from '../support/redis-gate.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const HOLD_MS = 5_000;

let url: string;
let redis: Redis;
let locks: RedisLock[];
const connections: Redis[] = [];

beforeAll(async () => {
  ({ url } = await startTestRedis());
  locks = [0, 1].map(() => {
    redis = new Redis(url);
    connections.push(redis);
    return new RedisLock(redis);
  });
});

afterAll(() => {
  for (const connection of connections) connection.disconnect();
});

test('one at a time, from several processes', async () => {
  let inside = 0;
  let most = 0;
  const results = await Promise.all(
    Array.from({ length: 6 }, (_, index) =>
      locks[index % 2]?.hold('exclusive', HOLD_MS, async () => {
        inside++;
        most = Math.max(most, inside);
        await redis.ping();
        await turn();
        inside--;
        return index;
      }),
    ),
  );
  expect(most).toBe(1);
  expect(results).toEqual([0, 1, 2, 3, 4, 5]);
  expect(await redis.exists('exclusive')).toBe(0);
});

test('different keys do not wait for each other', async () => {
  const [one, other] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  await Promise.all([
    locks[0]?.hold('one', HOLD_MS, async () => {
      one.resolve();
      await other.promise;
    }),
    locks[1]?.hold('other', HOLD_MS, async () => {
      other.resolve();
      await one.promise;
    }),
  ]);
  expect(await redis.exists('one', 'other')).toBe(0);
});

test('work that throws gives the lock back, and its error on', async () => {
  const failing = locks[0]?.hold('failing', HOLD_MS, async () => {
    throw new Error('out of paper');
  });
  await expect(failing).rejects.toThrow('out of paper');
  expect(await redis.exists('failing')).toBe(0);
});

test('a holder that outlived its lock does not give back another’s', async () => {
  let owner: string | null = null;
  await locks[0]?.hold('late', HOLD_MS, async () => {
    owner = await redis.get('late');
    // As if its time had run out, and somebody else had taken it.
    await redis.set('late', 'somebody else');
  });
  expect(owner).toEqual(expect.any(String));
  expect(await redis.get('late')).toBe('somebody else');
});

test('the lock of a dead holder ends by itself', async () => {
  await redis.set('dead', 'somebody', 'PX', 150);
  expect(await locks[0]?.hold('dead', HOLD_MS, async () => 'done')).toBe('done');
});

test('a holder’s lock lives as long as it says and no longer', async () => {
  const ttlMs = await locks[0]?.hold('lifetime', HOLD_MS, () => redis.pttl('lifetime'));
  expect(ttlMs).toBeGreaterThan(HOLD_MS - 2_000);
  expect(ttlMs).toBeLessThanOrEqual(HOLD_MS);
});

test('a lock is kept for as long as its holder works, and no longer than it may', async () => {
  await new RedisLock(redis, 2_000).hold('kept', 60_000, async () => {
    let leftMs = await redis.pttl('kept');
    expect(leftMs).toBeLessThanOrEqual(2_000);
    for (let renewals = 0; renewals < 2; renewals++) {
      await waitFor(async () => {
        const before = leftMs;
        leftMs = await redis.pttl('kept');
        return leftMs > before;
      });
    }
  });
  // One that works for longer than it may is left behind.
  // One lease outlasts any delay of a renewal here: without an end it would be kept.
  await new RedisLock(redis, 3_000).hold('kept', 3_500, async () => {
    await waitFor(async () => (await redis.exists('kept')) === 0);
  });
});

test('a lock that was lost is not taken back from who has it now', async () => {
  const renewals = vi.spyOn(redis, 'eval');
  await new RedisLock(redis, 90).hold('lost', HOLD_MS, async () => {
    await redis.set('lost', 'somebody else', 'PX', 60_000);
    renewals.mockClear();
    await waitFor(() => renewals.mock.calls.length >= 2);
    // Asked behind them, on the same connection: nothing has changed how long it is the other's.
    expect(await redis.pttl('lost')).toBeGreaterThan(30_000);
    await redis.del('lost');
    renewals.mockClear();
    await waitFor(() => renewals.mock.calls.length >= 2);
    expect(await redis.exists('lost')).toBe(0);
  });
  renewals.mockRestore();
});

test('waiting for a lock is ended by a signal, the work under one is not', async () => {
  const end = new AbortController();
  const begun = Promise.withResolvers<void>();
  const goOn = Promise.withResolvers<void>();
  const working = locks[0]?.hold(
    'ended',
    HOLD_MS,
    async () => {
      begun.resolve();
      await goOn.promise;
      return 'done';
    },
    end.signal,
  );
  await begun.promise;
  let worked = false;
  const waiting = locks[1]?.hold(
    'ended',
    HOLD_MS,
    async () => {
      worked = true;
    },
    end.signal,
  );
  const isEnded = expect(waiting).rejects.toThrow('enough');
  end.abort(new Error('enough'));
  await isEnded;
  goOn.resolve();
  expect(await working).toBe('done');
  expect(worked).toBe(false);
});

test('a lock that does not come free is given up on, without doing the work', async () => {
  await redis.set('stuck', 'somebody');
  let worked = false;
  const waiting = locks[0]?.hold('stuck', 60, async () => {
    worked = true;
  });
  await expect(waiting).rejects.toThrow('did not come free');
  expect(worked).toBe(false);
  expect(await redis.get('stuck')).toBe('somebody');
});

test('who takes it, and is not told as the connection breaks, has it when the connection is back', async () => {
  const gate = await connectThroughGate(url);
  const waiting = new AbortController();
  const lost = gate.arm('unheard', 'lose answer');
  const held = new RedisLock(gate.redis).hold('unheard', HOLD_MS, async () => 'done', waiting.signal);
  await lost;
  // Behind the command that is sent once more.
  await gate.redis.ping();
  await turn();
  waiting.abort(new Error('it waits'));
  expect(await held).toBe('done');
});

test('a lock that Redis gives when nobody waits for it any more keeps nobody else out', async () => {
  const gate = await connectThroughGate(url);
  const held = gate.arm('given-late', 'hold');
  const late = new RedisLock(gate.redis).hold('given-late', HOLD_MS, async () => 'held');
  await held;
  await expect(late).rejects.toThrow(/timed out/);
  gate.release();
  // What was sent behind it has been done then.
  await gate.redis.ping();
  expect(await redis.exists('given-late')).toBe(0);
});
