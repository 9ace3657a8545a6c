import { once } from 'node:events';
import { describe, expect, it } from 'vitest';
import type { Bucket } from '../../../src/service/budget/bucket.ts';
import { CountWatch } from '../../../src/service/budget/count-watch.ts';
import { RateBudget } from '../../../src/service/budget/rate-budget.ts';
import type { RateHeaders } from '../../../src/service/rate-headers.ts';
import { EVERY_REDIS, OTHER_ROUTE, RESET, ROUTE, rate, startTestBudget, WINDOW_MS } from './test-budget.ts';

const REFUSED = { answer: { rate: rate(90) }, block: { forMs: 7_000, of: 'bucket' as const } };

const COUNTING = 'budget:counting';
const DAY_MS = 24 * 60 * 60_000;

function bucket(facts: Partial<Bucket> = {}): Bucket {
  return { name: 'one', tier: '2', limit: 3, windowMs: WINDOW_MS, ...facts };
}

describe.each(EVERY_REDIS)('the buckets of guards on $what', async ({ searchPath }) => {
  const test = await startTestBudget(searchPath);
  const { redis, budget, sibling, acquire, refusal, now, pass, step, expire, stateOf } = test;

  /** Redis has counted without a gap for a day, or lost what it had of that. */
  async function newCompany(known: RateHeaders, isCounted = true): Promise<string> {
    if (isCounted) await redis.set(COUNTING, now() - DAY_MS);
    else await redis.del(COUNTING);
    return test.newCompany(known);
  }

  async function take(company: string, from: Bucket, by: RateBudget = budget) {
    const admission = await by.acquire(company, ROUTE, from);
    if (admission.permit === undefined)
      throw new Error(`no permit: ${admission.why}, ${admission.waitMs} ms`);
    return admission.permit;
  }

  async function refused(company: string, from: Bucket, by: RateBudget = budget) {
    const admission = await by.acquire(company, ROUTE, from);
    if (admission.permit !== undefined) throw new Error('a permit was granted');
    return admission;
  }

  const answered = { answer: { rate: rate(90) } };

  async function fill(company: string): Promise<void> {
    for (let request = 0; request < 3; request++)
      await budget.settle(await take(company, bucket()), answered);
  }

  /** What several ask for at once is granted before the first of them is answered: nobody gets it. */
  async function expectNoneOfSeveral(company: string, by: RateBudget): Promise<void> {
    const several = [1, 2, 3].map(() => by.acquire(company, ROUTE, bucket()));
    for (const one of await Promise.all(several)) expect(one.permit).toBeUndefined();
  }

  /** One goes, and no other beside it. */
  async function expectOneAtATime(company: string, first: RateBudget = budget): Promise<void> {
    await take(company, bucket(), first);
    for (const by of [first, sibling, budget])
      expect(await refused(company, bucket(), by)).toMatchObject({ why: 'guard', waitMs: 50 });
  }

  it('of one route in trouble wait with it, and hold the company once, however many there are', async () => {
    const company = await newCompany(rate(90));
    const block = { forMs: 300_000, of: 'trouble' } as const;
    const meetTrouble = async (name: string) =>
      budget.settle(await take(company, bucket({ name })), { answer: { rate: rate(90) }, block });
    await meetTrouble('one');
    expect(await refusal(company, OTHER_ROUTE)).toMatchObject({ why: 'blocked', waitMs: 60_000 });
    pass(300_000);
    await budget.settle(await acquire(company, OTHER_ROUTE), { answer: { rate: rate(90) } });
    await meetTrouble('another');
    for (const name of ['one', 'another', 'a third'])
      expect(await refused(company, bucket({ name }))).toMatchObject({ why: 'blocked', waitMs: 300_000 });
    await acquire(company, OTHER_ROUTE);
  });

  it('that a request is refused in, for what it asks, wait alone', async () => {
    const company = await newCompany(rate(90));
    const block = { forMs: 300_000, of: 'request' } as const;
    await budget.settle(await take(company, bucket()), { answer: { rate: rate(90) }, block });
    expect(await refused(company, bucket())).toMatchObject({ why: 'blocked', waitMs: 300_000 });
    await take(company, bucket({ name: 'another' }));
    await acquire(company, OTHER_ROUTE);
  });

  it('hold so many requests on their way as the guard allows, whoever sends them', async () => {
    const company = await newCompany(rate(100));
    for (const by of [budget, sibling, budget]) await take(company, bucket(), by);
    for (const by of [budget, sibling]) {
      expect(await refused(company, bucket(), by)).toMatchObject({ why: 'guard', waitMs: WINDOW_MS + 1 });
    }
  });

  it('keep a request for a window from its answer', async () => {
    const company = await newCompany(rate(100));
    const permits = [await take(company, bucket()), await take(company, bucket())];
    await take(company, bucket());
    pass(20_000);
    for (const permit of permits) await budget.settle(permit, answered);
    const { waitMs } = await refused(company, bucket());
    expect(waitMs).toBe(WINDOW_MS + 1);
    pass(waitMs);
    await take(company, bucket());
    await take(company, bucket());
    // The third one is on its way still.
    await refused(company, bucket());
  });

  it('let the next one in as soon as the oldest answer is a window old', async () => {
    const company = await newCompany(rate(100));
    await budget.settle(await take(company, bucket()), answered);
    pass(20_000);
    for (let more = 0; more < 2; more++) await budget.settle(await take(company, bucket()), answered);
    const { waitMs } = await refused(company, bucket());
    expect(waitMs).toBe(WINDOW_MS - 20_000 + 1);
    pass(waitMs);
    await take(company, bucket());
    await refused(company, bucket());
  });

  it('are each their own, and none of them holds up what has no guard', async () => {
    const [company, other] = [await newCompany(rate(100)), await newCompany(rate(100))];
    const full = bucket({ limit: 1 });
    await take(company, full);
    await refused(company, full);
    await take(company, { ...full, name: 'two' });
    await take(other, full);
    await acquire(company);
  });

  it('keep the place of a request without an answer until its lease ends, and a window more', async () => {
    const company = await newCompany(rate(100));
    const full = bucket({ limit: 1 });
    const lost = await take(company, full);
    await budget.settle(lost, {});
    await refused(company, full);
    const key = `budget:{${company}}:bucket:one`;
    expect(Number(await redis.zscore(key, lost.id)) - now()).toBeGreaterThan(23_000);
    await redis.zadd(key, now(), lost.id);
    await refused(company, full);
    pass(WINDOW_MS + 1);
    await take(company, full);
  });

  it('give the place of a request back that has surely not come to the service, and so does the limit', async () => {
    const company = await newCompany(rate(1));
    const full = bucket({ limit: 1 });
    await budget.settle(await take(company, full), { unsent: true });
    expect((await budget.read(company)).remaining).toBe(1);
    await take(company, full);
  });

  it('count the requests of a dead holder', async () => {
    const company = await newCompany(rate(100));
    const full = bucket({ limit: 1 });
    await expire(await take(company, full));
    expect((await refused(company, full)).why).toBe('guard');
  });

  it('cost no permit of the limit while they are full, and are not filled while there is none', async () => {
    const company = await newCompany(rate(2));
    const full = bucket({ limit: 1 });
    const permit = await take(company, full);
    await refused(company, full);
    await acquire(company);
    await budget.settle(permit, { unsent: true });
    await acquire(company);
    expect((await refused(company, full)).why).toBe('limit');
    expect(await redis.zcard(`budget:{${company}}:bucket:one`)).toBe(0);
  });

  it('of a guard that is a share of the rate limit follow that limit', async () => {
    const search = bucket({ name: 'search', limit: 0.4, share: true });
    for (const [limit, allowed] of [
      [10, 4],
      [9, 3],
      [2, 1],
    ] as const) {
      const company = await newCompany(rate(50, { limit }));
      for (let granted = 0; granted < allowed; granted++) await take(company, search);
      expect((await refused(company, search)).why).toBe('guard');
    }
  });

  it('that refuse are left alone for as long as the service says, and nothing else is', async () => {
    const company = await newCompany(rate(100));
    await budget.settle(await take(company, bucket()), REFUSED);
    const { why, waitMs } = await refused(company, bucket(), sibling);
    expect(why).toBe('blocked');
    expect(waitMs).toBeGreaterThan(5_000);
    expect(waitMs).toBeLessThanOrEqual(7_000);
    await take(company, bucket({ name: 'two' }));
    await acquire(company, ROUTE);
    expect((await budget.read(company)).blockedUntil).toBeUndefined();
  });

  it('are not waited for on a route of which no guard is known: there the route is left alone', async () => {
    const company = await newCompany(rate(100));
    await budget.settle(await acquire(company, ROUTE), REFUSED);
    expect((await refusal(company, ROUTE)).why).toBe('blocked');
    await acquire(company, OTHER_ROUTE);
  });

  it('do not let a shorter block end a longer one', async () => {
    const company = await newCompany(rate(100));
    const [first, second] = [await take(company, bucket()), await take(company, bucket())];
    await budget.settle(first, REFUSED);
    await budget.settle(second, { ...REFUSED, block: { forMs: 200, of: 'bucket' as const } });
    expect((await refused(company, bucket())).waitMs).toBeGreaterThan(5_000);
  });

  it('that may hold what nobody counted take one request at a time, which finds out for the next', async () => {
    const company = await newCompany(rate(100), false);
    const first = await take(company, bucket());
    expect(await refused(company, bucket(), sibling)).toMatchObject({ why: 'guard', waitMs: 50 });
    await take(company, bucket({ name: 'two' }));
    await acquire(company);
    pass(100);
    await budget.settle(first, answered);
    const second = await take(company, bucket(), sibling);
    await refused(company, bucket());
    await sibling.settle(second, REFUSED);
    expect((await refused(company, bucket())).why).toBe('blocked');
  });

  it('wait then for one that got no answer until its lease ends', async () => {
    const company = await newCompany(rate(100), false);
    const first = await take(company, bucket());
    pass(10_000);
    await budget.settle(first, {});
    pass(14_999);
    await refused(company, bucket());
    pass(1);
    await take(company, bucket());
  });

  it('are counted without a gap when a window has passed, and all requests that were on their way before it', async () => {
    const company = await newCompany(rate(100), false);
    await budget.settle(await take(company, bucket()), { unsent: true });
    pass(25_000 + WINDOW_MS);
    await budget.observe(company, rate(100, { resetMs: RESET + 2 * WINDOW_MS }));
    await take(company, bucket());
    await refused(company, bucket());
    pass(1);
    await take(company, bucket());
    await take(company, bucket());
    const other = await newCompany(rate(100));
    for (let request = 0; request < 3; request++) await take(other, bucket());
  });

  it('take one request at a time when Redis has lost what it had counted, whoever asks', async () => {
    const company = await newCompany(rate(100));
    await fill(company);
    await redis.flushall();
    await budget.observe(company, rate(90));
    await expectOneAtATime(company, sibling);
  });

  it('take one request at a time when a connection is new: Redis may have gone back to what it had some time ago', async () => {
    const company = await newCompany(rate(100));
    await fill(company);
    await redis.del(`budget:{${company}}:bucket:one`);
    redis.disconnect(true);
    await expectNoneOfSeveral(company, budget);
    await expectOneAtATime(company);
    expect(Object.keys((await stateOf(company)).flight)).toHaveLength(1);
  });

  it('take one request at a time for a process that has just begun: all may have been started again', async () => {
    const company = await newCompany(rate(100));
    await expectOneAtATime(company, new RateBudget(test.frozen, 0));
  });

  it('are counted from the gap on, not from when somebody asks next', async () => {
    const company = await newCompany(rate(100));
    await budget.settle(await take(company, bucket()), answered);
    redis.disconnect(true);
    await once(redis, 'ready');
    pass(25_000 + WINDOW_MS);
    await budget.observe(company, rate(100, { resetMs: RESET + 2 * WINDOW_MS }));
    await take(company, bucket());
    await refused(company, bucket());
    pass(2);
    await take(company, bucket());
  });

  it('take one request at a time when Redis’ clock was set forward: what was counted is not over', async () => {
    const company = await newCompany(rate(100));
    await fill(company);
    step(WINDOW_MS + 10_000);
    await expectNoneOfSeveral(company, budget);
    await expectOneAtATime(company);
    expect(Object.keys((await stateOf(company)).flight)).toHaveLength(1);
  });

  it('take one request at a time then for a process, too, that has asked for nothing yet', async () => {
    const company = await newCompany(rate(100));
    const idle = new RateBudget(test.frozen, 0, undefined, 0, new CountWatch(test.frozen, test.steadyNow));
    await redis.ping();
    pass(DAY_MS);
    await budget.observe(company, rate(100, { resetMs: RESET + DAY_MS }));
    await fill(company);
    step(WINDOW_MS + 10_000);
    await expectNoneOfSeveral(company, idle);
  });

  it('take as many as ever when Redis’ clock was set back, a window later at the most', async () => {
    const company = await newCompany(rate(100));
    step(-2 * DAY_MS);
    const first = await take(company, bucket());
    await refused(company, bucket());
    await budget.settle(first, answered);
    pass(25_000 + 2 * WINDOW_MS);
    await budget.observe(company, rate(100, { resetMs: RESET + 10 * WINDOW_MS }));
    for (let request = 0; request < 3; request++) await take(company, bucket());
  });

  it('keep nobody out who comes long after Redis’ clock was set back, when nothing else of it is known any more', async () => {
    pass(10 * DAY_MS);
    const company = await newCompany(rate(100));
    await redis.set(COUNTING, now() - 5 * DAY_MS);
    await fill(company);
    pass(31 * WINDOW_MS);
    // Redis' own clock, by which it forgets, does not pass here; nor was the bucket's time over before it was set back.
    await redis.del(`budget:{${company}}:state`);
    await redis.persist(`budget:{${company}}:bucket:one`);
    step(-2 * DAY_MS);
    await budget.observe(company, rate(100));
    await expectOneAtATime(company);
    expect(await redis.zcard(`budget:{${company}}:bucket:one`)).toBe(1);
  });

  it('take as many as ever while time passes as usual, however long nobody asks', async () => {
    const company = await newCompany(rate(100));
    await budget.settle(await take(company, bucket()), answered);
    pass(100 * WINDOW_MS);
    await budget.observe(company, rate(100, { resetMs: RESET + 100 * WINDOW_MS }));
    for (let request = 0; request < 3; request++) await take(company, bucket());
    await refused(company, bucket());
  });

  it('are forgotten when they cannot matter any more', async () => {
    const company = await newCompany(rate(100));
    await budget.settle(await take(company, bucket()), REFUSED);
    const bucketMs = await redis.pttl(`budget:{${company}}:bucket:one`);
    expect(bucketMs).toBeGreaterThan(WINDOW_MS + 20_000);
    expect(bucketMs).toBeLessThanOrEqual(WINDOW_MS + 25_001);
  });
});
