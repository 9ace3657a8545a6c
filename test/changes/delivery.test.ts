import { describe, expect, test } from 'vitest';
import { type ChangeConsumer, ConsumerError, deliver, feedLines } from '../../src/changes/delivery.ts';
import type { FeedEntry } from '../../src/store/changes.ts';
import { collect, DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';

const CONSUMER = 'handler';

describe.each(DATABASES)('on %s', async (kind) => {
  const store = await openTestStore(kind);
  const { changes, db } = store;
  const { logger } = testLogger();

  /** A list of so many records, and a consumer that notes every call. */
  async function open(
    count: number,
    take: (ids: string[], entries: readonly FeedEntry[]) => unknown = () => undefined,
  ) {
    const claim = await store.copy(documentsOf(count));
    const calls: string[] = [];
    const clock = { now: NOW };
    const stopping = new AbortController();
    const events: unknown[] = [];
    const onEvent = (instanceId: string, event: object) => void events.push({ instanceId, ...event });
    const consumer: ChangeConsumer = {
      name: CONSUMER,
      whileActive: true,
      async take(entries) {
        const ids = entries.map(({ id }) => id);
        calls.push(ids.length > 1 ? `${ids[0]}–${ids.at(-1)}` : `${ids[0]}`);
        return (await take(ids, entries)) as undefined;
      },
    };
    const key = { ...claim, consumer: CONSUMER };
    const context = { logger, signal: stopping.signal, onEvent };
    const once = () => deliver(changes, consumer, key, context, () => clock.now);
    return {
      claim,
      calls,
      clock,
      events,
      stopping,
      once,
      /** Delivers until nothing is left, as a worker does. @returns the pauses */
      async drain(most = 200): Promise<number[]> {
        const pauses: number[] = [];
        for (let turn = 0; turn < most; turn++) {
          const again = await once();
          if (again === undefined) return pauses;
          pauses.push(again - clock.now);
          clock.now = again;
        }
        return pauses;
      },
    };
  }
  const rowOf = async ({ list }: TestClaim) => (await changes.find(list, CONSUMER)) ?? expect.unreachable();
  const letters = async ({ list }: TestClaim) => {
    const dead = await changes.deadLetters(list, CONSUMER, 100);
    return dead.map(({ external_id }) => external_id).toSorted((a, b) => Number(a) - Number(b));
  };
  const broken =
    (...which: string[]) =>
    (ids: string[]) => {
      if (ids.some((id) => which.includes(id))) throw new ConsumerError(`It does not take ${ids}.`);
    };

  test('a consumer gets a list in batches of a hundred', async () => {
    const { claim, calls, once } = await open(250);
    expect(await once()).toBeUndefined();
    expect(calls).toEqual(['0–99', '100–199', '200–249']);
    expect((await rowOf(claim)).cursor).toBe((await store.list(claim)).change_seq);
    expect(await once()).toBeUndefined();
    expect(calls).toHaveLength(3);
  });

  test('a failed batch comes record by record, and the bad record five times', async () => {
    const { claim, calls, clock, events, drain } = await open(10, broken('3'));
    const pauses = await drain();
    const { instanceId, resource } = claim;
    const letter = { type: 'dead_letter', instanceId, resource, record: '3', error: 'It does not take 3.' };
    expect(events).toEqual([letter]);
    expect(calls).toEqual(['0–9', '0', '1', '2', '3', '3', '3', '3', '3', '4–9']);
    expect(pauses).toHaveLength(4);
    for (const [n, pause] of pauses.entries()) {
      expect(pause).toBeGreaterThanOrEqual(500 * 2 ** n);
      expect(pause).toBeLessThanOrEqual(1_000 * 2 ** n);
    }
    expect(await changes.deadLetters(claim.list, CONSUMER, 9)).toMatchObject([
      { external_id: '3', error_kind: 'handler', error_detail: 'It does not take 3.', at: clock.now },
    ]);
    expect(await rowOf(claim)).toMatchObject({ attempts: 0, failed_in_row: 0, error_kind: null });
  });

  test('a batch that fails after its slice comes record by record to its end', async () => {
    const { calls, clock, once } = await open(3, (ids) => {
      clock.now += 60_000;
      if (ids.length > 1) throw new ConsumerError('It was not done after 60 s.');
    });
    expect(await once()).toBe(clock.now);
    expect(calls).toEqual(['0–2', '0', '1', '2']);
  });

  test('after ten dead letters in a row the list waits for the end of the outage', async () => {
    let isDown = true;
    const { claim, calls, drain } = await open(15, () => {
      if (isDown) throw new ConsumerError('It is down.');
    });
    const pauses = await drain(100);
    expect(await letters(claim)).toEqual(documentsOf(10).map((_, n) => `${n}`));
    expect(calls.at(-1)).toBe('10');
    expect(Math.max(...pauses)).toBeLessThanOrEqual(5 * 60_000);
    expect(Math.min(...pauses.slice(-20))).toBeGreaterThanOrEqual(2.5 * 60_000);
    isDown = false;
    calls.length = 0;
    await drain();
    expect(calls).toEqual(['10', '11–14']);
    expect(await letters(claim)).toHaveLength(10);
    expect(await rowOf(claim)).toMatchObject({ failed_in_row: 0, attempts: 0 });
  });

  test('a delivered record resets the count of dead letters in a row', async () => {
    const bad = documentsOf(20).flatMap((_, n) => (n === 9 ? [] : [`${n}`]));
    const { claim, drain } = await open(20, broken(...bad));
    await drain();
    expect(await letters(claim)).toEqual(bad);
  });

  test('a try that waits for the service does not count', async () => {
    let waits = 8;
    const { claim, drain } = await open(1, () => {
      if (waits-- > 0) throw new ConsumerError('Too many requests.', { waitMs: 90_000 });
    });
    expect(await drain()).toEqual(Array(8).fill(90_000));
    expect(await rowOf(claim)).toMatchObject({ attempts: 0, error_kind: null });
    expect(await letters(claim)).toEqual([]);
  });

  test('an error of the app costs no try', async () => {
    const { claim, once } = await open(2, () => {
      throw new Error('The database is away.');
    });
    await expect(once()).rejects.toThrow('The database is away.');
    expect(await rowOf(claim)).toMatchObject({ cursor: 0, attempts: 0, error_kind: null });
  });

  test('the consumer’s work and the cursor are written together, or neither is', async () => {
    let isBroken = true;
    const { claim, clock, once } = await open(1, (ids) => async (transaction: typeof db) => {
      await transaction
        .insertInto('settings')
        .values({ name: `${kind}-${ids}`, value: '1' })
        .execute();
      if (isBroken) throw new ConsumerError('It broke behind its write.');
    });
    const settings = async () => (await db.selectFrom('settings').selectAll().execute()).length;
    clock.now = (await once()) ?? expect.unreachable();
    expect(await settings()).toBe(0);
    expect(await rowOf(claim)).toMatchObject({ cursor: 0, attempts: 1 });
    isBroken = false;
    expect(await once()).toBeUndefined();
    expect(await settings()).toBe(1);
    expect(await rowOf(claim)).toMatchObject({ attempts: 0 });
  });

  test('a replay during a delivery takes effect', async () => {
    let isFirst = true;
    const { claim, calls, once } = await open(150, async () => {
      if (isFirst) await changes.replayList(claim.list, CONSUMER);
      isFirst = false;
    });
    expect(await once()).toBeUndefined();
    expect(await rowOf(claim)).toMatchObject({ cursor: 0 });
    expect(await once()).toBeUndefined();
    expect(calls).toEqual(['0–99', '0–99', '100–149']);
  });

  test('a pause keeps the cursor, and the resumed list continues there', async () => {
    let isFirst = true;
    const { claim, calls, once } = await open(2, async () => {
      if (isFirst) await store.instances.setStatus(claim.instanceId, 'paused', { from: ['active'] });
      isFirst = false;
    });
    expect([await once(), await once()]).toEqual([undefined, undefined]);
    expect([(await rowOf(claim)).cursor, calls]).toEqual([0, ['0–1']]);
    await store.instances.setStatus(claim.instanceId, 'active', { from: ['paused'] });
    await once();
    expect(calls).toEqual(['0–1', '0–1']);
  });

  test('tries belong to a record, even if another record overtakes it', async () => {
    const { claim, calls, clock, once } = await open(2, broken('0', '1'));
    for (let turn = 0; turn < 4; turn++) clock.now = (await once()) ?? expect.unreachable();
    expect(await rowOf(claim)).toMatchObject({ attempts: 4 });
    // The replay moves it behind the other one.
    await changes.replayRecord(claim.list, '0');
    clock.now = (await once()) ?? expect.unreachable();
    expect(calls.at(-1)).toBe('1');
    expect(await rowOf(claim)).toMatchObject({ attempts: 1 });
    expect(await letters(claim)).toEqual([]);
    await changes.retry(claim.list, CONSUMER);
    expect(await rowOf(claim)).toMatchObject({ attempts: 0, not_before: null });
  });

  test('a shutdown ends the delivery and costs no try', async () => {
    const { claim, calls, clock, once, stopping } = await open(250, (ids) => {
      if (ids[0] !== '100') return;
      stopping.abort();
      throw new ConsumerError('It was broken off.');
    });
    expect(await once()).toBe(clock.now);
    expect(calls).toEqual(['0–99', '100–199']);
    expect(await rowOf(claim)).toMatchObject({ attempts: 0, error_kind: null });
    expect(await changes.read(claim.list, (await rowOf(claim)).cursor, 1)).toMatchObject([{ id: '100' }]);
  });

  test('a record that changes during a delivery comes in its newest form', async () => {
    let isFirst = true;
    const { claim, calls, once } = await open(120, async () => {
      if (!isFirst) return;
      isFirst = false;
      const next = await store.claimRun(claim);
      await store.write(next, ['{"id":"110","n":1}', '{"id":"5","n":1}'], { next: 'https://x.example/p2' });
    });
    await once();
    // The two changed records come last.
    expect(calls).toEqual(['0–99', '100–5']);
  });

  const linesOf = (list: number, after = 0, limit = 1_000) =>
    collect(feedLines(store.changes, list, { after, limit }));

  test('each line of the feed is a change, with the document to the byte', async () => {
    const documents = ['{"id":"a","n":1.50,"x":"\\u0041 ł"}', '{"id":12345678901234567890}', '{"id":"#1"}'];
    const first = await store.copy(documents);
    const second = await store.claimRun(first);
    await store.write(second, documents.slice(0, 2));
    await store.markUnseen(second);
    const [a, b, c] = (await store.feed(first.list)).map(({ seq }) => seq);
    expect(await linesOf(first.list)).toEqual([
      `{"seq":${a},"change":"created","id":"a","document":${documents[0]}}`,
      `{"seq":${b},"change":"created","id":12345678901234567890,"document":${documents[1]}}`,
      `{"seq":${c},"change":"deleted","id":"#1","document":null}`,
    ]);
    expect(await linesOf(first.list, b)).toHaveLength(1);
    expect(await linesOf(first.list, c)).toEqual([]);
  });

  test('a reader asks for a number of lines, and continues after the last one', async () => {
    const claim = await store.copy(documentsOf(250));
    const ids: string[] = [];
    for (let after = 0; ; ) {
      const lines = (await linesOf(claim.list, after, 120)).map((line) => JSON.parse(line));
      if (lines.length === 0) break;
      expect(lines.length).toBe(Math.min(120, 250 - ids.length));
      ids.push(...lines.map(({ id }) => id));
      after = lines.at(-1).seq;
    }
    expect(ids).toEqual(documentsOf(250).map((text) => JSON.parse(text).id));
  });
});
