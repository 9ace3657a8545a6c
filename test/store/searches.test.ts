import Sqlite from 'better-sqlite3';
import { describe, expect, onTestFinished, test } from 'vitest';
import { listMark, markedWords } from '../../src/store/search-words.ts';
import { Searches } from '../../src/store/searches.ts';
import { migrateFurther } from './migrate-further.ts';
import { openTestStore } from './test-store.ts';

const store = await openTestStore();

/** The searches of a process; of a store of the test file where none is given. */
function openSearches({ db = store.db, mostMs }: { db?: typeof store.db; mostMs?: number } = {}) {
  const searches = new Searches(db, mostMs);
  onTestFinished(() => searches.close());
  return {
    searches,
    find: (instanceId: string, typed: string) =>
      searches.find({ instanceId, resource: 'contacts', typed, offset: 0, limit: 5 }),
  };
}

const NAMES = ['alpha', 'bravo', 'carlo', 'delta', 'echo', 'foxtrot', 'golf', 'hotel'];

test('words that most of a great many records have keep nobody waiting while they are looked for', async () => {
  const { claim } = await store.claimRun();
  const mark = listMark(claim.instanceId, 'contacts');
  const write = store.db.prepare<[number, string]>('insert into search (rowid, words) values (?, ?)');
  // Each record has all but one of the words, so that there is no match.
  await store.db.writeAtOnce(() => {
    for (let seq = 1; seq <= 50_000; seq++)
      write.run(seq, markedWords(NAMES.filter((_, n) => n !== seq % NAMES.length).join(' '), mark));
  });
  const search = () =>
    store.records.browse(claim.instanceId, 'contacts', { search: NAMES.join(' '), offset: 0, limit: 5 });
  // With it the thread begins.
  await search();
  let turns = 0;
  let next = setImmediate(function count() {
    turns += 1;
    next = setImmediate(count);
  });
  expect(await search()).toMatchObject({ total: 0, isCoarse: false, isShortened: false });
  clearImmediate(next);
  expect(turns).toBeGreaterThan(50);
});

test('a search that cannot be handed to the thread is refused with the reason, and the next one is done', async () => {
  const { find } = openSearches();
  // What cannot be copied; where the machine has no room for a further thread, it is the same.
  await expect(find('ins_x', (() => 'word') as never)).rejects.toThrow(/could not be cloned/);
  expect(await find('ins_x', 'word')).toMatchObject({ total: 0 });
});

describe('of several searches at once', () => {
  test('each instance has its turn, however many another one asks for', async () => {
    const { find } = openSearches();
    const order: string[] = [];
    const ask = (instanceId: string, typed: string) =>
      find(instanceId, typed).then(() => order.push(`${instanceId} ${typed}`));
    await Promise.all([
      ask('a', '1'),
      ask('a', '2'),
      ask('a', '3'),
      ask('b', '1'),
      ask('c', '1'),
      ask('b', '2'),
    ]);
    expect(order).toEqual(['a 1', 'a 2', 'b 1', 'c 1', 'a 3', 'b 2']);
  });

  test('an instance has eight under way, further ones are refused, and others are not', async () => {
    const { find } = openSearches();
    const asked = Array.from({ length: 10 }, (_, n) => find('a', `word${n}`));
    const other = find('b', 'word');
    const outcomes = await Promise.allSettled(asked);
    expect(outcomes.map(({ status }) => status === 'fulfilled')).toEqual(asked.map((_, n) => n < 8));
    expect(outcomes[8]).toMatchObject({ reason: { name: 'SearchRefusedError', reason: 'too_many' } });
    expect(await other).toMatchObject({ total: 0 });
    expect(await find('a', 'word')).toMatchObject({ total: 0 });
  });

  test('none is waited for too long, and those that nobody waits for any more leave their places', async () => {
    // Sooner than any thread begins.
    const { find } = openSearches({ mostMs: 1 });
    const outcomes = await Promise.allSettled(Array.from({ length: 8 }, () => find('a', 'word')));
    for (const outcome of outcomes) expect(outcome).toMatchObject({ reason: { reason: 'too_long' } });
    await expect(find('a', 'word')).rejects.toMatchObject({ reason: 'too_long' });
  });

  test('those that wait when the process ends are told so', async () => {
    const { searches, find } = openSearches();
    const asked = Promise.allSettled([find('a', 'one'), find('a', 'two'), find('b', 'three')]);
    await searches.close();
    for (const outcome of await asked)
      expect(outcome).toMatchObject({ reason: { message: 'The thread of the searches has ended.' } });
  });
});

describe('trouble of the thread', () => {
  test('with a damaged index is told with what to do, and the database is known to be damaged', async () => {
    const { url, db } = await openTestStore();
    const { find } = openSearches({ db });
    new Sqlite(url.replace('file:', ''))
      .unsafeMode()
      .exec("update search_data set block = x'00000000ffffffffffffffffff'")
      .close();
    await expect(find('a', 'word')).rejects.toMatchObject({
      code: expect.stringMatching(/^SQLITE_CORRUPT/),
      message: expect.stringContaining('The database file is damaged'),
    });
    await expect(db.check()).rejects.toThrow('The database file is damaged');
  });

  test('ends it with its reason: the next search begins another one', async () => {
    const { url, db } = await openTestStore();
    const { find } = openSearches({ db });
    const other = new Sqlite(url.replace('file:', ''));
    onTestFinished(() => void other.close());
    migrateFurther(other);
    await expect(find('a', 'word')).rejects.toMatchObject({ name: 'NewerSchemaError' });
    other.exec("delete from kysely_migration where name = '9000-next'");
    expect(await find('a', 'word')).toMatchObject({ total: 0 });
  });
});
