import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { FileLocks } from '../../src/runtime/file-locks.ts';
import { RedisLock } from '../../src/tokens/lock.ts';
import { RefreshLock } from '../../src/tokens/refresh-lock.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestRedis } from '../support/test-redis.ts';

const redis = new Redis((await startTestRedis()).url);
afterAll(() => redis.disconnect());
const { signal: never } = new AbortController();

test('the lock of a refresh whose holder does not come to its end is given up on in time, and another’s is not touched', async () => {
  const dir = tempDir();
  const [one, other] = [0, 1].map(
    () => new RefreshLock({ lock: new RedisLock(redis), hostLocks: new FileLocks(dir) }),
  );
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const first = one?.hold(
    'ins_1',
    60_000,
    async () => {
      begun.resolve();
      await goOn.promise;
      return 'done';
    },
    never,
  );
  await begun.promise;
  await redis.flushall();
  let worked = false;
  const work = async () => {
    worked = true;
    return 'done';
  };
  for (let time = 0; time < 2; time++) {
    await expect(other?.hold('ins_1', 100, work, never)).rejects.toMatchObject({ remedy: 'wait' });
  }
  expect(worked).toBe(false);
  // What the first one gives back by now is not its own in Redis any more.
  await redis.set('tokens:{ins_1}:lock', 'somebody else', 'PX', 60_000);
  goOn.resolve();
  expect(await first).toBe('done');
  expect(await redis.get('tokens:{ins_1}:lock')).toBe('somebody else');
  await redis.flushall();
  expect(await other?.hold('ins_1', 60_000, work, never)).toBe('done');
});
