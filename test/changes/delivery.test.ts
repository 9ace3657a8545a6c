import { describe, expect, test } from 'vitest';
import { type ChangeConsumer, ConsumerError, deliver, feedLines } from '../../src/changes/delivery.ts';
import type { FeedEntry } from '../../src/store/changes.ts';
import { collect, DATABASES, documentsOf, NOW, openTestStore, type TestClaim } from '../store/test-store.ts';
import { testLogger } from '../support/test-logger.ts';
import { waitFor } from '../support/wait-for.ts';

const CONSUMER = 'handler';
const RETRY_MS = [1_000, 5_000, 30_000, 120_000, 300_000];

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
    const context = { logger, signal: stopping.signal, onEvent, retryMs: RETRY_MS };
    const attempt = (alone: boolean) =>
      deliver(changes, consumer, key, context, { alone, now: () => clock.now });
    const once = async () => {
      const delivered = await attempt(false);
      return 'again' in delivered ? delivered.again : expect.unreachable('a suspect');
    };
    return {
      claim,
      calls,
      clock,
      events,
      stopping,
      attempt,
      rowNow: () => rowOf(claim),
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

  test('a failed batch comes record by record, and the bad record six times', async () => {
    const { claim, calls, clock, events, drain } = await open(10, broken('3'));
    const pauses = (await drain()).filter((ms) => ms > 0);
    const { instanceId, resource } = claim;
    const letter = { type: 'dead_letter', instanceId, resource, record: '3', error: 'It does not take 3.' };
    expect(events).toEqual([letter]);
    // After the next success it comes once more: an outage may have been to blame.
    expect(calls).toEqual(['0–9', '0', '1', '2', '3', '3', '3', '3', '3', '3', '4–9', '3']);
    expect(pauses).toEqual(RETRY_MS);
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
    const { claim, calls, events, drain } = await open(15, () => {
      if (isDown) throw new ConsumerError('It is down.');
    });
    const pauses = await drain(100);
    expect(events).toHaveLength(10);
    expect(await letters(claim)).toEqual(documentsOf(10).map((_, n) => `${n}`));
    expect(calls.at(-1)).toBe('10');
    expect(new Set(pauses.slice(-20))).toEqual(new Set([300_000]));
    isDown = false;
    calls.length = 0;
    await drain();
    // The dead letters come again behind the others.
    expect(calls).toEqual(['10', '11–9']);
    expect(await letters(claim)).toEqual([]);
    expect(await rowOf(claim)).toMatchObject({ failed_in_row: 0, attempts: 0 });
  });

  test('a dead letter is tried once an hour, for a day', async () => {
    const { claim, calls, clock, events, drain } = await open(1, broken('0'));
    await drain();
    const tried: number[] = [];
    const buriedAt = clock.now;
    calls.length = 0;
    for (let minute = 0; minute < 30 * 60; minute++) {
      clock.now += 60_000;
      const due = await changes.dueLetters(clock.now);
      const isOurs = due.some(({ list }) => list === claim.list);
      if (!isOurs) continue;
      tried.push(Math.round((clock.now - buriedAt) / 60_000));
      await changes.retryDue(claim.list, CONSUMER, clock.now);
      expect((await changes.dueLetters(clock.now)).some(({ list }) => list === claim.list)).toBe(false);
      expect(await drain()).toEqual([]);
    }
    expect(tried).toEqual(Array.from({ length: 24 }, (_, n) => 60 * (n + 1)));
    expect([calls.length, events.length]).toEqual([24, 1]);
    expect(await rowOf(claim)).toMatchObject({ failed_in_row: 1, attempts: 0 });
  });

  test('a batch that waits for its target is not given record by record', async () => {
    const { calls, once, clock } = await open(3, () => {
      throw new ConsumerError('It is being updated.', { waitMs: 7_000 });
    });
    expect(await once()).toBe(clock.now + 7_000);
    expect(calls).toEqual(['0–2']);
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
    await changes.retry(claim.list, CONSUMER, clock.now);
    expect(await rowOf(claim)).toMatchObject({ attempts: 0, not_before: null });
  });

  describe('a delivery that never ended', () => {
    /** The records whose calls never end, as the process ends first. */
    const ending =
      (...which: string[]) =>
      (ids: string[]) =>
        ids.some((id) => which.includes(id)) ? new Promise(() => undefined) : undefined;
    /** Starts a delivery, and waits for a call that does not end. */
    async function crash({ attempt, calls }: Awaited<ReturnType<typeof open>>, alone: boolean, call: string) {
      const before = calls.length;
      void attempt(alone);
      await waitFor(() => calls.slice(before).includes(call), `the call of ${call}`);
    }

    test('makes the list a suspect, whose batch comes record by record and alone', async () => {
      let isBroken = true;
      const one = await open(150, (ids) => (isBroken && ids.length > 1 ? ending('0')(ids) : undefined));
      await crash(one, false, '0–99');
      isBroken = false;
      expect(await one.attempt(false)).toEqual({ isSuspect: true, wasCharged: false });
      one.calls.length = 0;
      expect(await one.attempt(true)).toEqual({ again: undefined });
      expect(one.calls).toEqual([...documentsOf(100).map((_, n) => `${n}`), '100–149']);
      expect(await rowOf(one.claim)).toMatchObject({ begun_at: null, attempts: 0, error_kind: null });
      expect(await one.attempt(false)).toEqual({ again: undefined });
    });

    test('is suspected no longer than for its batch, however long that takes', async () => {
      let isBroken = true;
      const one = await open(250, (ids) => {
        one.clock.now += 400;
        return isBroken ? ending('0')(ids) : undefined;
      });
      await crash(one, false, '0–99');
      isBroken = false;
      one.calls.length = 0;
      while ((await one.rowNow()).begun_at !== null) await one.attempt(true);
      expect(one.calls.slice(-3)).toEqual(['99', '100–199', '200–249']);
    });

    test('charges the record that is alone, and its fifth try is the last', async () => {
      const one = await open(4, ending('1'));
      const { claim, clock, attempt, events } = one;
      const key = { ...claim, consumer: CONSUMER };
      await crash(one, false, '0–3');
      // Nobody was alone: nobody is charged.
      await changes.noteEnd(key, 'The handler ended the delivery process: exit.');
      expect(await rowOf(claim)).toMatchObject({ attempts: 0, error_kind: null });
      for (let tries = 1; tries <= 5; tries++) {
        await crash(one, true, '1');
        await changes.noteEnd(key, 'The handler ended the delivery process: out of memory');
        const notBefore = clock.now + (RETRY_MS[tries - 1] ?? 0);
        expect(await rowOf(claim)).toMatchObject({ attempts: tries, not_before: notBefore });
        expect(await attempt(false)).toEqual({ again: notBefore });
        clock.now = notBefore;
        expect(await attempt(false)).toEqual({ isSuspect: true, wasCharged: true });
      }
      one.calls.length = 0;
      await attempt(true);
      expect(one.calls).toEqual(['2', '3']);
      const detail = 'The handler ended the delivery process: out of memory (5 times)';
      expect(await changes.deadLetters(claim.list, CONSUMER, 9)).toMatchObject([
        { external_id: '1', error_kind: 'handler_ended', error_detail: detail },
      ]);
      expect(events).toMatchObject([{ type: 'dead_letter', record: '1', error: detail }]);
    });

    test('does not charge for the end of the app', async () => {
      const one = await open(2, (ids) => {
        if (ids.length > 1) return ending('0')(ids);
        one.stopping.abort();
        throw new ConsumerError('It was broken off.');
      });
      await crash(one, false, '0–1');
      expect(await one.attempt(true)).toEqual({ again: NOW });
      expect(await rowOf(one.claim)).toMatchObject({ attempts: 0, not_before: NOW });
    });

    test('does not charge what fails in order', async () => {
      const one = await open(2, (ids) => (ids.length > 1 ? ending('0')(ids) : broken('0')(ids)));
      await crash(one, false, '0–1');
      const again = one.clock.now + 1_000;
      expect(await one.attempt(true)).toEqual({ again });
      const failed = { attempts: 1, error_kind: 'handler', error_detail: 'It does not take 0.' };
      expect(await rowOf(one.claim)).toMatchObject(failed);
      one.clock.now = again;
      expect(await one.attempt(false)).toEqual({ isSuspect: true, wasCharged: false });
    });

    test('leaves a dead letter one try, alone', async () => {
      const one = await open(2, ending('1'));
      await changes.claim({ ...one.claim, consumer: CONSUMER }, { whileActive: true, now: NOW });
      for (let tries = 1; tries <= 5; tries++) {
        await crash(one, true, '1');
        one.clock.now += 300_000;
      }
      await one.attempt(true);
      expect(await letters(one.claim)).toEqual(['1']);
      one.clock.now += 60 * 60_000;
      await changes.retryDue(one.claim.list, CONSUMER, one.clock.now);
      expect(await one.attempt(false)).toEqual({ isSuspect: true, wasCharged: false });
      await crash(one, true, '1');
      one.clock.now += 300_000;
      await one.attempt(true);
      expect(await changes.deadLetters(one.claim.list, CONSUMER, 9)).toMatchObject([
        { external_id: '1', error_detail: 'The handler ended the delivery process (1 time)', is_retried: 0 },
      ]);
      expect(one.events).toHaveLength(1);
    });
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
