import { describe, expect, test } from 'vitest';
import { MOST_COST, type SearchCost } from '../../src/store/search-cost.ts';
import {
  MOST_SOUGHT,
  MOST_TEXT,
  MOST_WORDS,
  markedWords,
  searchQuery,
} from '../../src/store/search-words.ts';
import { openTestStore } from '../store/test-store.ts';

const store = await openTestStore();
const { claim } = await store.claimRun();

const free = () => 0;

/** The phrases of the query, without the marks. */
function sought(typed: string, cost: SearchCost = free): string[] {
  const query = searchQuery(typed, '~', cost)?.query ?? '';
  return query.split(' AND ').map((phrase) => phrase.replaceAll(/["~]/g, ''));
}

async function search(text: string) {
  const options = { search: text, offset: 0, limit: 50 };
  const { records, isShortened } = await store.records.browse(claim.instanceId, 'contacts', options);
  return { ids: records.map(({ id }) => id), isShortened };
}

describe('what is typed', () => {
  test.each([
    ['a word a hundred times', 'example '.repeat(100), ['example *']],
    ['a letter a hundred times', 'e '.repeat(100), ['e']],
    ['a letter, which would be the beginning of a word of each record', 'e smith 7', ['e', 'smith *', '7']],
    ['beginnings of others', 'ex exam example exam com', ['example *', 'com *']],
    ['the beginning of an address', 'ada@ex ada@example.com', ['ada example com *']],
    ['a letter that others begin with, which is another word', 'a ada', ['a', 'ada *']],
    ['a letter that stands in an address as a word', 'a a.ada', ['a ada *']],
  ])('%s is looked for once', (_what, typed, phrases) => {
    expect(sought(typed)).toEqual(phrases);
    expect(searchQuery(typed, '~', free)?.isShortened).toBe(false);
  });

  test.each([
    ['with spaces between', ' '],
    ['without', '.'],
  ])('is looked for up to the eighth word, %s', (_what, between) => {
    const words = Array.from({ length: 40 }, (_, n) => `word${n}x`);
    const { query = '', isShortened } = searchQuery(words.join(between), '~', free) ?? {};
    expect(query.match(/~\w+/g)?.map((word) => word.slice(1))).toEqual(words.slice(0, MOST_SOUGHT));
    expect(isShortened).toBe(true);
    expect(searchQuery(words.slice(0, MOST_SOUGHT).join(between), '~', free)?.isShortened).toBe(false);
  });

  test('finds the same as all of it would, and says what was left out', async () => {
    await store.write(claim, [
      '{"id":"1","name":"one two three four five six seven eight nine"}',
      '{"id":"2","name":"one two three four five six seven eight"}',
      '{"id":"3","name":"J. Smith, plan b"}',
    ]);
    await store.index();
    const eight = 'one two three four five six seven eight';
    expect(await search(eight)).toEqual({ ids: ['1', '2'], isShortened: false });
    expect(await search(`${eight} nine`)).toEqual({ ids: ['1', '2'], isShortened: true });
    expect(await search('o on one one')).toEqual({ ids: [], isShortened: false });
    expect(await search('on one one')).toEqual({ ids: ['1', '2'], isShortened: false });
    expect(await search('j smith')).toEqual({ ids: ['3'], isShortened: false });
    expect(await search('p')).toEqual({ ids: [], isShortened: false });
  });
});

describe('what would take long', () => {
  const dear =
    (...words: string[]): SearchCost =>
    (word, isBeginning) =>
      words.includes(word.slice(1) + (isBeginning ? ' *' : '')) ? MOST_COST + 1 : 1;

  test.each<[what: string, typed: string, SearchCost, string[]]>([
    ['a beginning', '17 main', dear('17 *'), ['17', 'main *']],
    ['a row of words', 'to be.or.not.to.be', dear('not'), ['to *', 'be', 'or', 'not']],
    ['one that comes when nothing is left', 'one two', () => MOST_COST, ['one *', 'two']],
    ['a word by itself, which does not', 'a the b', () => MOST_COST, ['a', 'the *', 'b']],
  ])('%s is looked for by whole words', (_what, typed, cost, phrases) => {
    expect(sought(typed, cost)).toEqual(phrases);
    expect(searchQuery(typed, '~', cost)?.isCoarse).toBe(!typed.startsWith('a '));
  });

  test('is known before it begins, and keeps nobody waiting: beginnings and rows that a great many words have', async () => {
    const [{ claim: wordy }, { claim: other }] = [await store.claimRun(), await store.claimRun()];
    const distinct = (from: number) =>
      Array.from({ length: 9_990 }, (_, n) => `ab${(from * 9_990 + n).toString(36).padStart(6, '0')}`);
    const same = `to be ${'aa '.repeat(9_980)}`;
    for (let n = 0; n < 40; n++) await store.write(wordy, [`{"id":"d${n}","x":"${distinct(n).join(' ')}"}`]);
    for (let n = 0; n < 350; n++) await store.write(wordy, [`{"id":"s${n}","x":"${same}"}`]);
    for (const claim of [wordy, other]) await store.write(claim, ['{"id":"last","x":"ab to be aa.aa.aa"}']);
    await store.index();
    const find = async ({ instanceId }: typeof wordy, typed: string) => {
      const options = { search: typed, offset: 0, limit: 1 };
      const { total, isCoarse } = await store.records.browse(instanceId, 'contacts', options);
      return { total, isCoarse };
    };
    expect(await find(wordy, 'ab')).toEqual({ total: 1, isCoarse: true });
    expect(await find(wordy, 'ab000')).toEqual({ total: 5, isCoarse: false });
    expect(await find(wordy, distinct(7)[7] ?? '')).toEqual({ total: 1, isCoarse: false });
    expect(await find(wordy, 'aa.'.repeat(8))).toEqual({ total: 351, isCoarse: true });
    expect(await find(wordy, 'aa')).toEqual({ total: 351, isCoarse: false });
    expect(await find(wordy, 'to.be')).toEqual({ total: 351, isCoarse: false });
    // Nobody else's search is any the worse for it.
    for (const typed of ['ab', 'aa.aa.aa', 'to.be'])
      expect(await find(other, typed)).toEqual({ total: 1, isCoarse: false });
  });
});

test.each([
  ['letters', 'a ', MOST_WORDS],
  ['long words', `${'x'.repeat(1_023)} `, MOST_TEXT / 1_024],
  ['one word', 'x', 1],
  ['signs that become words', '\uFDFA', MOST_WORDS],
])('of a text of many megabytes of %s a bounded part is indexed', (_what, part, most) => {
  const marked = markedWords(part.repeat(4_000_000 / part.length), '~');
  expect(marked.split('~').length - 1).toBe(most);
});
