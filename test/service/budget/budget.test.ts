import { randomUUID } from 'node:crypto';
import { Redis } from 'ioredis';
import { afterAll, describe, expect, it, vi } from 'vitest';
import { openRedis } from '../../../src/runtime/private-redis.ts';
import {
  type Bucket,
  LEFT_TO_SYNC,
  type Outcome,
  type Permit,
  RateBudget,
} from '../../../src/service/budget.ts';
import { tempDir } from '../../support/temp-dir.ts';
import { testLogger } from '../../support/test-logger.ts';
import { frozenRedis } from './frozen-redis.ts';
import { OTHER_ROUTE, RESET, ROUTE, rate } from './rate.ts';

const WINDOW_MS = 60_000;
const BUCKET: Bucket = { name: 'one', limit: 3, windowMs: 1_000 };

/** Every Redis that the app may start by itself. */
const EVERY_REDIS = [
  { what: 'the Redis of the PATH', searchPath: process.env.PATH },
  { what: 'the Redis in JavaScript', searchPath: '' },
];

describe.each(EVERY_REDIS)('the budget on $what', async ({ searchPath }) => {
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
  // Nothing is kept for people where a test counts permits.
  const budget = new RateBudget(frozen, { reservedForPeople: 0 });
  const sibling = new RateBudget(frozen, { reservedForPeople: 0 });

  function pass(ms: number): void {
    nowMs += ms;
  }

  /** A company of which nothing is known, or of which an answer has just told this. */
  async function newCompany(known?: ReturnType<typeof rate>): Promise<string> {
    const company = randomUUID();
    if (known !== undefined) await budget.observe(company, known);
    return company;
  }

  async function acquire(company: string, route = ROUTE, bucket?: Bucket, by = budget): Promise<Permit> {
    const admission = await by.acquire(company, route, bucket);
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

  const answer = (remaining: number, facts = {}): Outcome => ({
    answered: true,
    rate: rate(remaining, facts),
  });
  const refused = (of: 'company' | 'bucket' | 'error', forMs = 7_000): Outcome => ({
    ...answer(100),
    block: { forMs, of },
  });

  it('grants what remains, and the rest waits for the end of the window', async () => {
    const company = await newCompany(rate(5));
    expect(await takeAll(company)).toHaveLength(5);
    pass(25_001);
    expect(await refusal(company)).toMatchObject({ why: 'limit', waitMs: 30_000 - 25_001 });
  });

  it('takes the highest use of the answers, in whatever order they come', async () => {
    const company = await newCompany(rate(9));
    const [first, second, third] = [await acquire(company), await acquire(company), await acquire(company)];
    await budget.release(third, answer(6));
    await budget.release(first, answer(8));
    await budget.release(second, answer(7));
    expect((await budget.read(company)).remaining).toBe(6);
    expect(await takeAll(company)).toHaveLength(6);
  });

  it('takes the earliest end of the answers, and the same window by its name, to rounding', async () => {
    const company = await newCompany(rate(2, { endsInMs: 30_000 }));
    await budget.release(await acquire(company), answer(1, { endsInMs: 28_200 }));
    const cut = { resetMs: RESET - 999, endsInMs: 29_000 };
    await budget.release(await acquire(company), answer(0, cut));
    expect((await refusal(company)).waitMs).toBe(28_200);
  });

  it('ignores an answer about the window before', async () => {
    const company = await newCompany(rate(2));
    const late = await acquire(company);
    await budget.release(await acquire(company), answer(100, { resetMs: RESET + WINDOW_MS }));
    await budget.release(late, answer(0, { limit: 7 }));
    expect(await budget.read(company)).toMatchObject({ remaining: 100, limit: 120 });
  });

  it.each<[string, Outcome, number]>([
    ['counts a request without an answer as spent', {}, 2],
    ['gives back the permit of a request that was not sent', { unsent: true }, 3],
  ])('%s', async (_title, outcome, left) => {
    const company = await newCompany(rate(3));
    await budget.release(await acquire(company), outcome);
    expect(await takeAll(company)).toHaveLength(left);
  });

  it('lets one request find out when nothing is known, and another one when its holder is dead', async () => {
    const company = await newCompany();
    const all = await Promise.all(
      [1, 2, 3, 4].map((n) => (n % 2 ? budget : sibling).acquire(company, ROUTE)),
    );
    expect(all.filter(({ permit }) => permit !== undefined)).toHaveLength(1);
    expect(await refusal(company)).toMatchObject({ why: 'limit', waitMs: 25 });
    pass(2_001);
    await budget.release(await acquire(company), answer(10));
    // The dead one may have been counted.
    expect(await takeAll(company)).toHaveLength(9);
  });

  it('lets a sixtieth of the limit go into the next window, until that tells of itself', async () => {
    const company = await newCompany(rate(0, { endsInMs: 250 }));
    pass((await refusal(company)).waitMs);
    const [probe, ...others] = await takeAll(company);
    expect(others).toHaveLength(1);
    await budget.release(probe as Permit, answer(9, { resetMs: RESET + WINDOW_MS }));
    expect(await takeAll(company)).toHaveLength(8);
  });

  it.each([
    [undefined, 118],
    [50, 48],
    [500, 118],
  ])('takes the limit that the service tells, %s, or the contract’s, and a minute', async (limit, left) => {
    const company = await newCompany();
    await budget.release(await acquire(company), { answered: true, limit });
    expect(await takeAll(company)).toHaveLength(left);
    expect((await budget.read(company)).resetAt).toBe(nowMs + WINDOW_MS);
  });

  it('learns nothing of a refusal that does not tell of the limit', async () => {
    const company = await newCompany();
    await budget.release(await acquire(company), { answered: true, refused: true });
    await acquire(company);
    await refusal(company);
  });

  it('never grants more than its own count of the window allows, whatever remains', async () => {
    const company = await newCompany(rate(119));
    for (let taken = 0; taken < 119; taken++) await budget.release(await acquire(company), answer(119));
    expect(await refusal(company)).toMatchObject({ why: 'limit', waitMs: 30_000 });
  });

  it('keeps permits for people and for the sync, until shortly before the end of the window', async () => {
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

  it('holds a permit back while somebody else uses the limit', async () => {
    const company = await newCompany(rate(20));
    await budget.release(await acquire(company), answer(15));
    expect(await takeAll(company)).toHaveLength(14);
  });

  it('leaves a company alone for as long as a 429 says, and no other company', async () => {
    const company = await newCompany(rate(100));
    await budget.release(await acquire(company), refused('company'));
    expect(await refusal(company, OTHER_ROUTE)).toMatchObject({ why: 'blocked', waitMs: 7_000 });
    expect((await budget.read(company)).blockedUntil).toBe(nowMs + 7_000);
    await acquire(await newCompany(rate(1)));
  });

  it('blocks ever longer while a service refuses again and again without a wait', async () => {
    const company = await newCompany(rate(100));
    const waits: number[] = [];
    for (let times = 0; times < 4; times++) {
      await budget.release(await acquire(company), refused('company', 50));
      const { waitMs } = await refusal(company);
      waits.push(waitMs);
      pass(waitMs);
    }
    expect(waits).toEqual([50, 100, 200, 400]);
  });

  it('holds up the company for a route’s trouble once, then the route alone', async () => {
    const company = await newCompany(rate(100));
    await budget.release(await acquire(company), refused('error', 300_000));
    pass((await refusal(company, OTHER_ROUTE)).waitMs);
    expect((await refusal(company)).waitMs).toBe(240_000);
    await budget.release(await acquire(company, OTHER_ROUTE), answer(90, { resetMs: RESET + WINDOW_MS }));
    pass(240_000);
    await budget.release(await acquire(company), refused('error', 300_000));
    await acquire(company, OTHER_ROUTE);
  });

  describe('a guard', () => {
    it('lets no more through than its bucket holds, in flight or answered within its window', async () => {
      const company = await newCompany(rate(100));
      const [first] = [await acquire(company, ROUTE, BUCKET), await acquire(company, ROUTE, BUCKET)];
      await acquire(company, ROUTE, BUCKET);
      expect(await refusal(company, ROUTE, BUCKET, sibling)).toMatchObject({ why: 'guard', waitMs: 1_001 });
      pass(400);
      await budget.release(first, answer(99));
      expect((await refusal(company, ROUTE, BUCKET)).waitMs).toBe(1_001);
      pass(1_001);
      await acquire(company, ROUTE, BUCKET);
      await acquire(company, ROUTE, { ...BUCKET, name: 'two' });
    });

    it('of a share of the rate limit follows that limit', async () => {
      const company = await newCompany(rate(50, { limit: 9 }));
      const search: Bucket = { ...BUCKET, limit: 0.4, share: true };
      for (let granted = 0; granted < 3; granted++) await acquire(company, ROUTE, search);
      expect((await refusal(company, ROUTE, search)).why).toBe('guard');
    });

    it('that refuses is left alone for as long as the service says, and nothing else is', async () => {
      const company = await newCompany(rate(100));
      await budget.release(await acquire(company, ROUTE, BUCKET), refused('bucket'));
      expect(await refusal(company, ROUTE, BUCKET)).toMatchObject({ why: 'blocked', waitMs: 7_000 });
      await acquire(company, ROUTE, { ...BUCKET, name: 'two' });
      await acquire(company, OTHER_ROUTE);
    });

    it('that nobody knew of paces its route for ten minutes', async () => {
      const company = await newCompany(rate(100, { endsInMs: WINDOW_MS }));
      await budget.release(await acquire(company), refused('bucket', 1_000));
      pass(1_000);
      await acquire(company);
      expect(await refusal(company)).toMatchObject({ why: 'guard', waitMs: 500 });
      await acquire(company, OTHER_ROUTE);
      pass(600_000);
      await budget.observe(company, rate(100, { resetMs: RESET + 10 * WINDOW_MS }));
      await acquire(company);
      await acquire(company);
    });
  });

  it('finds out anew after its clock was set back by an hour', async () => {
    const company = await newCompany(rate(0));
    pass(-3_600_000);
    await acquire(company);
    pass(3_600_000);
  });

  it('tells what it knows', async () => {
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

  it('forgets a company that is idle for half an hour', async () => {
    const company = await newCompany(rate(5));
    const ttlMs = await redis.pttl(`budget:{${company}}:state`);
    expect(ttlMs).toBeGreaterThan(29 * 60_000);
    expect(ttlMs).toBeLessThanOrEqual(30 * 60_000);
  });
});
