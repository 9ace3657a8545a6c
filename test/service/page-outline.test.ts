import fc from 'fast-check';
import { expect, test } from 'vitest';
import { outlineOf } from '../../src/service/page-outline.ts';

const outline = (page: string, mostItems = 100) => outlineOf(Buffer.from(page), mostItems);
const itemTexts = (page: string) => outline(page)?.texts().map(String) ?? [];

/** JSON of any shape, with whatever white space and escapes are allowed between and in its tokens. */
const space = fc.stringMatching(/^[ \t\r\n]{0,2}$/);
const text = fc
  .tuple(fc.string({ unit: 'binary', maxLength: 8 }), fc.boolean())
  .map(([value, escapes]) =>
    escapes
      ? `"${Array.from({ length: value.length }, (_, i) => `\\u${value.charCodeAt(i).toString(16).padStart(4, '0')}`).join('')}"`
      : JSON.stringify(value),
  );
const scalar = fc.oneof(
  text,
  fc.constantFrom('0', '-0', '1.0', '12345678901234567890', '1e400', '-1.5E-7', 'true', 'false', 'null'),
  fc.constantFrom('"\\\\"', '"\\""', '"\\\\\\""', '"[{"', '"]},"', '"_results"'),
);
const { value } = fc.letrec<{ value: string; list: string; object: string }>((tie) => ({
  value: fc.oneof({ maxDepth: 4, withCrossShrink: true }, scalar, tie('list'), tie('object')),
  list: fc
    .tuple(fc.array(fc.tuple(space, tie('value'), space), { maxLength: 4 }), space)
    .map(([items, inner]) => `[${items.map((parts) => parts.join('')).join(',') || inner}]`),
  object: fc
    .tuple(fc.array(fc.tuple(space, text, space, tie('value'), space), { maxLength: 4 }), space)
    .map(
      ([members, inner]) =>
        `{${members.map(([a, name, b, member, c]) => `${a}${name}${b}:${a}${member}${c}`).join(',') || inner}}`,
    ),
}));
const paginationName = fc.constantFrom('"_pagination"', '"\\u005fpagination"', '"_pagi\\u006eation"');
const resultsName = fc.constantFrom('"_results"', '"\\u005fresults"', '"_res\\u0075lts"');
const results = fc
  .array(fc.tuple(space, value, space), { maxLength: 5 })
  .map((items) => `[${items.map((parts) => parts.join('')).join(',')}]`);
const member = fc.tuple(space, fc.oneof(text, paginationName), space, value, space);
const body = fc
  .tuple(
    fc.array(member, { maxLength: 3 }),
    fc.array(fc.tuple(space, resultsName, space, results, space), { minLength: 1, maxLength: 2 }),
    fc.array(member, { maxLength: 3 }),
    space,
  )
  .map(([before, lists, after, outer]) => {
    const members = [...before, ...lists, ...after].map(
      ([a, name, b, content, c]) => `${a}${name}${b}:${a}${content}${c}`,
    );
    return `${outer}{${members.join(',')}}${outer}`;
  });

test('of any page, what it says of the next one is found, and how many items there are', () => {
  fc.assert(
    fc.property(body, (page) => {
      const { _results: items, _pagination: pagination } = JSON.parse(page);
      const found = outline(page);
      expect(found?.count).toBe(items.length);
      expect(found?.pagination === undefined ? undefined : JSON.parse(found.pagination)).toEqual(pagination);
    }),
    { numRuns: 500 },
  );
});

test('a page that is cut short anywhere is none, but for space behind its end', () => {
  fc.assert(
    fc.property(body, fc.nat(), (page, at) => {
      const bytes = Buffer.from(page);
      const cut = bytes.subarray(0, at % bytes.length);
      const isWhole = page.trimEnd().length <= cut.toString().length;
      expect(outlineOf(cut, 100) !== undefined).toBe(isWhole);
    }),
    { numRuns: 500 },
  );
});

test('whatever the bytes are, the look at them ends', () => {
  const bytes = fc
    .array(fc.constantFrom(...'{}[]",:\\ \n1a', '"_results":[', '"_pagination":{', '\u00e9'), {
      maxLength: 60,
    })
    .map((parts) => `{${parts.join('')}`);
  fc.assert(
    fc.property(bytes, (page) => {
      const found = outline(page);
      if (found?.count !== undefined) expect(found.texts().length).toBe(found.count);
    }),
    { numRuns: 2_000 },
  );
});

test('no more items are looked at than are allowed, and one', () => {
  const page = `{"_results":[${'{},'.repeat(1_000)}{}],"_pagination":{"next":null}}`;
  expect(outline(page, 10)?.count).toBe(11);
  expect(outline(page, 1_001)?.count).toBe(1_001);
});

test.each([
  ['a list', '[]'],
  ['a text', '"{}"'],
  ['nothing', ''],
  ['a member without a name', '{1:2}'],
  ['a name without a value', '{"_results"}'],
])('what is no object of members has no outline: %s', (_what, page) => {
  expect(outline(page)).toBeUndefined();
});

test('results that are no list are not counted', () => {
  expect(outline('{"_results":{"a":[1]}}')?.count).toBeUndefined();
  expect(outline('{"_results":[1],"_results":7}')?.count).toBeUndefined();
});

/** A second way to take white space out: by all tokens of the text. */
function onOneLine(json: string): string {
  return (json.match(/"(?:[^"\\]|\\.)*"|[^\s"]+/g) ?? []).join('');
}

test('of any page, the texts are those of the items, and on one line', () => {
  fc.assert(
    fc.property(body, (page) => {
      const texts = itemTexts(page);
      expect(texts.map((item) => JSON.parse(item))).toEqual(JSON.parse(page)._results);
      expect(onOneLine(page)).toContain(`:[${texts.join(',')}]`);
    }),
    { numRuns: 500 },
  );
});

test.each([
  ['numbers to the letter', '[1.0,12345678901234567890,1e400,-0]'],
  ['escapes to the letter', String.raw`["\u00e9\/\ud83d","\\",{"a\"]":"\\\""}]`],
  ['texts that look like the end of it', '["]","}",",","[{"]'],
  ['spaces in texts', '["a  b"," c "]'],
])('%s', (_what, list) => {
  const page = `{"_results":${list}}`;
  expect(`[${itemTexts(page).join(',')}]`).toBe(list);
});

test('white space is left out, wherever it may stand', () => {
  const page =
    ' {\n "a" : [ 1 , { } ] ,\r\n "_results" : [ {\t"id" : 1 , "l" : [ ] } , " x " , [ 1 , 2 ] ] } ';
  expect(itemTexts(page)).toEqual(['{"id":1,"l":[]}', '" x "', '[1,2]']);
});

test('of several lists the last one counts; one further down is none', () => {
  expect(itemTexts('{"_results":[1],"a":{"_results":[2]},"_results":[3,4]}')).toEqual(['3', '4']);
  expect(itemTexts('{"_results":[],"a":[{"_results":[2]}]}')).toEqual([]);
});

test('however deep it is nested', () => {
  const deep = `${'[{"a":'.repeat(2_000)}1${'}]'.repeat(2_000)}`;
  expect(itemTexts(`{"_results":[${deep},2]}`)).toEqual([deep, '2']);
  const deeper = `${'['.repeat(500_000)}${']'.repeat(500_000)}`;
  expect(itemTexts(`{"x":${deeper},"_results":[${deeper}]}`)[0]?.length).toBe(1_000_000);
});
