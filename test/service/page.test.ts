import { expect, test } from 'vitest';
import { checkListPage, readJson, readListPage } from '../../src/service/page.ts';

const END = '"_pagination":{"next":null}';
const BAD_ANSWER = expect.objectContaining({ kind: 'bad_answer', remedy: 'wait' });

test.each<[string, string[]]>([
  ['large numbers and fractions', ['{"id":12345678901234567890,"f":1.0,"e":1e400}']],
  ['escapes, quotes and brackets in strings', [String.raw`{"id":"\u00e9\\","t":"]}\",[{"}`, '"[\\"]"']],
  ['blanks within items', ['{\r\n "id" : "a",\t"l": [ 1 , 2 ] }', '[ ]']],
  ['items that are no objects', ['7', 'null', '"x"', '[[],[{}]]']],
  ['a raw line break or tab within a string', ['{"id":1}', '{"id":2,"t":"a\nb\tc"}', '{"id":3}']],
  ['what JSON does not know', ['{"id":1,"n":NaN}', String.raw`{"id":2,"t":"\d"}`, '{"id":3,}']],
  ['a list within of the same name', ['{"_results":[1,2],"_pagination":{"next":"x"}}']],
  ['nothing', []],
])('items are cut out as they came: %s', (_what, texts) => {
  for (const body of [
    `{"_results":[${texts.join(',')}],${END}}`,
    `\n{ ${END} , "_links":{"_results":[0]},"_results" : [ ${texts.join(' ,\n')} ] }\r\n`,
    `{"_results":[9,9],"x":"\\"_results\\":[8]","_results":[${texts.join(',')}],${END}}`,
  ]) {
    expect(readListPage(body)).toEqual({ next: null, texts });
  }
});

test('an empty page with a next is no end, and null is', () => {
  const next = 'https://x.example/p2';
  expect(readListPage(`{"_pagination":{"next":"${next}"},"_results":[]}`).next).toBe(next);
  expect(readListPage(`{"_error":null,"_results":[],${END}}`).next).toBeNull();
});

test.each([
  ['cut short in an item', `{${END},"_results":[{"id"`],
  ['cut short behind an item', `{${END},"_results":[{"id":1}`],
  ['with a quote that nothing closes', `{"_results":[{"id":"1}],${END}}`],
  ['with brackets that do not match', `{"_results":[{"id":[1}],${END}}`],
  ['empty', ''],
  ['HTML', '<h1>hello</h1>'],
  ['null', 'null'],
  ['a number', '7'],
  ['a list', `[{"_results":[],${END}}]`],
  ['without results', `{${END}}`],
  ['with results that are no list', `{${END},"_results":{}}`],
  ['without pagination', '{"_results":[]}'],
  ['with pagination that is null', '{"_pagination":null,"_results":[]}'],
  ['without a next', '{"_pagination":{},"_results":[]}'],
  ['with an empty next', '{"_pagination":{"next":""},"_results":[]}'],
  ['with a next that is false', '{"_pagination":{"next":false},"_results":[]}'],
  ['an error as well', `{"_error":{"status":500},${END},"_results":[]}`],
  ['an error as well, behind all else', `{${END},"_results":[],"_error":"oops"}`],
  ['followed by something', `{${END},"_results":[]} x`],
  ['with NaN outside its results', `{${END},"count":NaN,"_results":[]}`],
  ['of more than ten thousand results', `{${END},"_results":[${'1,'.repeat(10_000)}1]}`],
  ['of half a million values', `{${END},"_results":[[${'[],'.repeat(500_000)}[]]]}`],
])('a page that is %s is not taken for the last one: it is asked for again', (_what, body) => {
  expect(() => readListPage(body)).toThrow(BAD_ANSWER);
});

test('a parsed page is judged alike', () => {
  expect(checkListPage(JSON.parse(`{"_results":[],${END}}`))).toBeNull();
  for (const page of [null, [], {}, { _results: [] }, { _results: {}, _pagination: { next: null } }]) {
    expect(() => checkListPage(page)).toThrow(BAD_ANSWER);
  }
});

test('a large text is parsed, unless it holds more values than memory has room for', () => {
  const large = `["${'[{,'.repeat(500_000)}"]`;
  expect(readJson(large, 'an answer')).toEqual([expect.any(String)]);
  expect(() => readJson(`[${'[],'.repeat(500_000)}1]`, 'an answer')).toThrow(/more than 500000 values/);
});
