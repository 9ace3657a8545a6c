import { Redis } from 'ioredis';
import { afterAll, beforeEach, expect, test } from 'vitest';
import { ServiceError } from '../../src/client/errors.ts';
import { RefreshPauses } from '../../src/tokens/refresh-pauses.ts';
import { startTestRedis } from '../support/test-redis.ts';
import { waitFor } from '../support/wait-for.ts';

const { url } = await startTestRedis();
const redis = new Redis(url);
afterAll(() => redis.disconnect());

const trouble = new ServiceError('wait', 'The token route has trouble (500).', { status: 500 });
const ALMOST_ONE = 1 - 2 ** -53;

let count = 0;
let id: string;
beforeEach(() => {
  id = `ins_${++count}`;
});

/** What is left of the pauses after one failure, two, and so on, in milliseconds. */
async function pausesAfter(failures: number, random: number, kind: 'trouble' | 'rejection' = 'trouble') {
  const pauses = new RefreshPauses(redis, () => random);
  const left: number[] = [];
  for (let failure = 1; failure <= failures; failure++) {
    await pauses.begin(kind, id, trouble);
    left.push(await redis.pttl(`tokens:{${id}}:${kind}:pause`));
  }
  return left;
}

test.each<['trouble' | 'rejection', number, number]>([
  ['trouble', 500, 5 * 60_000],
  ['rejection', 30_000, 60 * 60_000],
])(
  'after %s the pauses double, up to a longest one, scattered over the upper half',
  async (kind, firstMs, longestMs) => {
    const longest = await pausesAfter(14, ALMOST_ONE, kind);
    await redis.flushall();
    const shortest = await pausesAfter(14, 0, kind);
    for (const [index, left] of longest.entries()) {
      const full = Math.min(firstMs * 2 ** index, longestMs);
      expect(left).toBeLessThanOrEqual(full);
      expect(shortest[index]).toBeLessThanOrEqual(full / 2);
      // Each is far longer than one some failures before: what passes between two commands does not matter.
      expect(left).toBeGreaterThan(index < 3 ? 0 : Math.min(full / 2, (longest[index - 3] ?? 0) * 2));
      expect(shortest[index]).toBeGreaterThan(
        index < 3 ? 0 : Math.min(full / 4, (shortest[index - 3] ?? 0) * 2),
      );
    }
  },
);

test.each([
  ['trouble', 5 * 60_000],
  ['rejection', 60 * 60_000],
] as const)(
  'after %s the failures are counted for far longer than the longest pause between them',
  async (kind, longestMs) => {
    await pausesAfter(1, 0, kind);
    expect(await redis.pttl(`tokens:{${id}}:${kind}:failures`)).toBeGreaterThan(2 * longestMs);
  },
);

test('a pause after what no waiting mends ends when it is asked to, and the next is as long as it would have been', async () => {
  await pausesAfter(12, 0);
  const pauses = new RefreshPauses(redis, () => 0);
  await pauses.endGivenUp(id);
  await expect(pauses.check('trouble', id)).rejects.toMatchObject({ remedy: 'wait' });
  const refused = new ServiceError('give_up', 'The service does not accept the app.');
  await pauses.begin('trouble', id, refused);
  await pauses.endGivenUp(id);
  await pauses.check('trouble', id);
  await pauses.begin('trouble', id, refused);
  expect(await redis.pttl(`tokens:{${id}}:trouble:pause`)).toBeGreaterThan(2 * 60_000);
});

test('during a pause everybody is told why, and afterwards nobody', async () => {
  const pauses = new RefreshPauses(redis, () => 0);
  await pauses.check('trouble', id);
  await pauses.begin('trouble', id, trouble);
  const sibling = new RefreshPauses(redis);
  await expect(sibling.check('trouble', id)).rejects.toMatchObject({
    remedy: 'wait',
    message: trouble.message,
    status: 500,
    retryAfterMs: undefined,
  });
  await sibling.check('rejection', id);
  await sibling.check('trouble', 'ins_another');
  await waitFor(() => sibling.check('trouble', id).then(() => true));
});

test('a wait that the service asks for is kept, and made a little longer for each by another part', async () => {
  const asked = new ServiceError('wait', 'Slow down (429).', { status: 429, retryAfterMs: 100_000 });
  for (const [random, least, most] of [
    [0, 90_000, 100_000],
    [ALMOST_ONE, 100_001, 110_000],
  ] as const) {
    const pauses = new RefreshPauses(redis, () => random);
    await pauses.begin('trouble', id, asked);
    const told = await pauses.check('trouble', id).catch((error: unknown) => error as ServiceError);
    expect(told).toMatchObject({ remedy: 'wait', status: 429 });
    expect(told?.retryAfterMs).toBeGreaterThanOrEqual(least);
    expect(told?.retryAfterMs).toBeLessThanOrEqual(most);
  }
});

test('a wait that is shorter than the pause by then makes none shorter', async () => {
  const pauses = new RefreshPauses(redis, () => 0);
  const hurried = new ServiceError('wait', 'Come back at once (503).', { status: 503, retryAfterMs: 50 });
  for (let failure = 1; failure <= 14; failure++) await pauses.begin('trouble', id, hurried);
  const told = await pauses.check('trouble', id).catch((error: unknown) => error as ServiceError);
  expect(told?.retryAfterMs).toBeGreaterThan(2 * 60_000);
  expect(told?.retryAfterMs).toBeLessThanOrEqual(2.5 * 60_000);
});

test('when all is well pauses and failures are forgotten', async () => {
  await pausesAfter(8, 0);
  const pauses = new RefreshPauses(redis, () => 0);
  await pauses.end(['trouble', 'rejection'], id);
  await pauses.check('trouble', id);
  expect(await redis.keys(`*${id}*`)).toEqual([]);
  const [again = 0] = await pausesAfter(1, 0);
  expect(again).toBeLessThanOrEqual(250);
});

test('nothing of it stays in Redis for good', async () => {
  await pausesAfter(2, 0);
  await pausesAfter(2, 0, 'rejection');
  const keys = await redis.keys(`*${id}*`);
  expect(keys.length).toBe(4);
  for (const key of keys) expect(await redis.pttl(key)).toBeGreaterThan(0);
});
