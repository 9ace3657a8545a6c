import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, test, vi } from 'vitest';
import { openRedis } from '../../../src/runtime/private-redis.ts';
import {
  type BlockKind,
  type Bucket,
  LEFT_TO_SYNC,
  type Outcome,
  type Permit,
  RateBudget,
} from '../../../src/service/budget.ts';
import type { RateHeaders } from '../../../src/service/headers.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { testLogger } from '../../support/test-logger.ts';
import { frozenRedis } from './frozen-redis.ts';

const WINDOW_MS = 60_000;
const ROUTE = '/contacts';
const OTHER_ROUTE = '/conversations';
/** The end of a window by the service's clock, which may differ from ours. */
const RESET = Date.UTC(2031, 0, 1);
const BUCKET: Bucket = { name: 'one', limit: 3, windowMs: 1_000 };

/** Headers of a window of 120 requests that ends in half a minute. */
function rate(remaining: number, facts: Partial<RateHeaders> = {}): RateHeaders {
  return { limit: 120, remaining, resetMs: RESET, endsInMs: 30_000, burstRemaining: undefined, ...facts };
}

const answer = (remaining: number, facts = {}): Outcome => ({
  answered: true,
  rate: rate(remaining, facts),
});

const refused = (of: BlockKind, forMs = 7_000): Outcome => ({ ...answer(100), block: { forMs, of } });

// Each Redis that the app may start.
describe.each([
  ['the Redis of the PATH', process.env.PATH],
  ['the Redis in JavaScript', ''],
])('the budget on %s', async (_what, searchPath) => {
  vi.stubEnv('PATH', searchPath);
  const lease = await openRedis({ dir: tempDir(), logger: testLogger().logger });
  vi.unstubAllEnvs();
  const redis = new Redis(lease.url);
  afterAll(async () => {
    redis.disconnect();
    await lease.release();
  });
  let nowMs = Date.now();
  const frozen = frozenRedis(redis, () => nowMs);
  const budget = new RateBudget(frozen, { reservedForPeople: 0 });
  const sibling = new RateBudget(frozen, { reservedForPeople: 0 });

  function pass(ms: number): void {
    nowMs += ms;
  }

  /** An unknown company, or one whose headers the budget has just seen. */
  async function newCompany(known?: RateHeaders): Promise<string> {
    const company = randomUUID();
    if (known !== undefined) await budget.observe(company, known);
    return company;
  }

  async function acquire(company: string, route = ROUTE, bucket?: Bucket): Promise<Permit> {
    const admission = await budget.acquire(company, route, bucket);
    if (admission.permit === undefined)
      throw new Error(`no permit: ${admission.why}, ${admission.waitMs} ms`);
    return admission.permit;
  }

  async function refusal(company: string, route = ROUTE, bucket?: Bucket, by = budget) {
    const admission = await by.acquire(company, route, bucket);
    if (admission.permit !== undefined) throw new Error('a permit was granted');
    return admission;
  }

  async function takeAll(company: string, by = budget): Promise<Permit[]> {
    const permits: Permit[] = [];
    for (;;) {
      const { permit } = await by.acquire(company, ROUTE);
      if (permit === undefined) return permits;
      permits.push(permit);
    }
  }

  /** Sends one request. */
  const spend = async (company: string, outcome: Outcome, route = ROUTE) =>
    budget.release(await acquire(company, route), outcome);

  test('grants what remains; the next request waits for the end of the window', async () => {
    const company = await newCompany(rate(5));
    expect(await takeAll(company)).toHaveLength(5);
    pass(25_001);
    expect(await refusal(company)).toMatchObject({ why: 'limit', waitMs: 30_000 - 25_001 });
  });

  test('believes the highest use of the answers, in any order', async () => {
    const company = await newCompany(rate(9));
    const [first, second, third] = [await acquire(company), await acquire(company), await acquire(company)];
    await budget.release(third, answer(6));
    await budget.release(first, answer(8));
    await budget.release(second, answer(7));
    expect((await budget.read(company)).remaining).toBe(6);
    expect(await takeAll(company)).toHaveLength(6);
  });

  test('believes the earliest end, and knows a window by its rounded reset', async () => {
    const company = await newCompany(rate(2));
    await spend(company, answer(1, { endsInMs: 28_200 }));
    await spend(company, answer(0, { resetMs: RESET - 999, endsInMs: 29_000 }));
    expect((await refusal(company)).waitMs).toBe(28_200);
  });

  test('ignores an answer of the window before', async () => {
    const company = await newCompany(rate(2));
    const late = await acquire(company);
    await spend(company, answer(100, { resetMs: RESET + WINDOW_MS }));
    await budget.release(late, answer(0, { limit: 7 }));
    expect(await budget.read(company)).toMatchObject({ remaining: 100, limit: 120 });
  });

  test.each<[string, Outcome, number]>([
    ['counts a request without an answer', {}, 2],
    ['does not count a request that was not sent', { unsent: true }, 3],
  ])('%s', async (_title, outcome, left) => {
    const company = await newCompany(rate(3));
    await spend(company, outcome);
    expect(await takeAll(company)).toHaveLength(left);
  });

  test('explores an unknown window with one request, and again if that one dies', async () => {
    const company = await newCompany();
    const both = [budget, sibling, budget, sibling];
    const all = await Promise.all(both.map((by) => by.acquire(company, ROUTE)));
    expect(all.filter(({ permit }) => permit !== undefined)).toHaveLength(1);
    expect(await refusal(company)).toMatchObject({ why: 'limit', waitMs: 25 });
    pass(2_001);
    await spend(company, answer(10));
    // The service may have counted the dead one.
    expect(await takeAll(company)).toHaveLength(9);
  });

  test('lets a sixtieth of the limit go into the next window before it is known', async () => {
    const company = await newCompany(rate(0, { endsInMs: 250 }));
    pass((await refusal(company)).waitMs);
    const [probe, ...others] = await takeAll(company);
    expect(others).toHaveLength(1);
    await budget.release(probe as Permit, answer(9, { resetMs: RESET + WINDOW_MS }));
    expect(await takeAll(company)).toHaveLength(8);
  });

  test.each([
    [undefined, 118],
    [50, 48],
    [500, 118],
  ])('without a window, a limit of %s leaves %d requests a minute', async (limit, left) => {
    const company = await newCompany();
    await spend(company, { answered: true, limit });
    expect(await takeAll(company)).toHaveLength(left);
    expect((await budget.read(company)).resetAt).toBe(nowMs + WINDOW_MS);
  });

  test('learns nothing from a refusal without the limit’s headers', async () => {
    const company = await newCompany();
    await spend(company, { answered: true, refused: true });
    await acquire(company);
    await refusal(company);
  });

  test('grants no more than its own count allows, whatever remains', async () => {
    const company = await newCompany(rate(19, { limit: 20 }));
    for (let taken = 0; taken < 19; taken++) await spend(company, answer(19, { limit: 20 }));
    expect(await refusal(company)).toMatchObject({ why: 'limit', waitMs: 30_000 });
  });

  test('reserves permits for people and for the sync until near the window’s end', async () => {
    const company = await newCompany(rate(50));
    const sync = new RateBudget(frozen);
    const calls = new RateBudget(frozen, { leftToSync: LEFT_TO_SYNC });
    const granted = [...(await takeAll(company, calls)), ...(await takeAll(company, sync))];
    expect(granted).toHaveLength(48);
    for (const permit of granted.slice(0, 36)) await budget.release(permit, answer(14));
    pass(25_001);
    expect(await refusal(company, ROUTE, undefined, calls)).toMatchObject({ waitMs: 1_999 });
    pass(1_999);
    expect(await takeAll(company, calls)).toHaveLength(2);
  });

  test('holds one permit back while another app uses the limit', async () => {
    const company = await newCompany(rate(20));
    await spend(company, answer(15));
    expect(await takeAll(company)).toHaveLength(14);
  });

  test('blocks a company for as long as a 429 says, and no other company', async () => {
    const company = await newCompany(rate(100));
    await spend(company, refused('company'));
    expect(await refusal(company, OTHER_ROUTE)).toMatchObject({ why: 'blocked', waitMs: 7_000 });
    expect((await budget.read(company)).blockedUntil).toBe(nowMs + 7_000);
    await acquire(await newCompany(rate(1)));
  });

  test('blocks longer with each refusal in a row', async () => {
    const company = await newCompany(rate(100));
    for (const expected of [50, 100, 200, 400]) {
      await spend(company, refused('company', 50));
      const { waitMs } = await refusal(company);
      expect(waitMs).toBe(expected);
      pass(waitMs);
    }
  });

  test('blocks the company once for a route’s errors, then the route alone', async () => {
    const company = await newCompany(rate(100));
    await spend(company, refused('error', 300_000));
    pass((await refusal(company, OTHER_ROUTE)).waitMs);
    expect((await refusal(company)).waitMs).toBe(240_000);
    await spend(company, answer(90, { resetMs: RESET + WINDOW_MS }), OTHER_ROUTE);
    pass(240_000);
    await spend(company, refused('error', 300_000));
    await acquire(company, OTHER_ROUTE);
  });

  test('keeps a guard’s bucket to its limit, in flight or answered within its window', async () => {
    const company = await newCompany(rate(100));
    const first = await acquire(company, ROUTE, BUCKET);
    await acquire(company, ROUTE, BUCKET);
    await acquire(company, ROUTE, BUCKET);
    expect(await refusal(company, ROUTE, BUCKET, sibling)).toMatchObject({ why: 'guard', waitMs: 1_001 });
    pass(400);
    await budget.release(first, answer(99));
    expect((await refusal(company, ROUTE, BUCKET)).waitMs).toBe(1_001);
    pass(1_001);
    await acquire(company, ROUTE, BUCKET);
    await acquire(company, ROUTE, { ...BUCKET, name: 'two' });
  });

  test('takes a guard’s share from the limit that the service names', async () => {
    const company = await newCompany(rate(50, { limit: 9 }));
    const search: Bucket = { ...BUCKET, limit: 0.4, share: true };
    for (let granted = 0; granted < 3; granted++) await acquire(company, ROUTE, search);
    expect((await refusal(company, ROUTE, search)).why).toBe('guard');
  });

  test('blocks the bucket of a guard that refuses, and nothing else', async () => {
    const company = await newCompany(rate(100));
    await budget.release(await acquire(company, ROUTE, BUCKET), refused('bucket'));
    expect(await refusal(company, ROUTE, BUCKET)).toMatchObject({ why: 'blocked', waitMs: 7_000 });
    await acquire(company, ROUTE, { ...BUCKET, name: 'two' });
    await acquire(company, OTHER_ROUTE);
  });

  test('paces a route for ten minutes after an unknown guard refused it', async () => {
    const company = await newCompany(rate(100, { endsInMs: WINDOW_MS }));
    await spend(company, refused('bucket', 1_000));
    pass(1_000);
    await acquire(company);
    expect(await refusal(company)).toMatchObject({ why: 'guard', waitMs: 500 });
    await acquire(company, OTHER_ROUTE);
    pass(600_000);
    await budget.observe(company, rate(100, { resetMs: RESET + 10 * WINDOW_MS }));
    await acquire(company);
    await acquire(company);
  });

  test('explores again after its clock was set back by an hour', async () => {
    const company = await newCompany(rate(0));
    pass(-3_600_000);
    await acquire(company);
    pass(3_600_000);
  });

  test('shows what it knows of a company', async () => {
    const company = await newCompany();
    const nothing = { limit: undefined, remaining: undefined, resetAt: undefined };
    expect(await budget.read(company)).toMatchObject(nothing);
    await budget.observe(company, rate(77, { limit: 100, burstRemaining: 50 }));
    expect(await budget.read(company)).toEqual({
      limit: 100,
      remaining: 77,
      resetAt: nowMs + 30_000,
      burstRemaining: 50,
      blockedUntil: undefined,
    });
  });

  test('forgets a company after half an hour', async () => {
    const company = await newCompany(rate(5));
    const leftMs = await redis.pttl(`budget:{${company}}:state`);
    expect(leftMs).toBeGreaterThan(29 * 60_000);
    expect(leftMs).toBeLessThanOrEqual(30 * 60_000);
  });
});
