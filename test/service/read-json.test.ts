import { expect, test } from 'vitest';
import { ServiceError } from '../../src/service/errors.ts';
import { readListPage } from '../../src/service/list-page.ts';
import { readJson } from '../../src/service/read-json.ts';

const MEGABYTE = 1024 * 1024;

function pageWith(results: string): string {
  return `{"_pagination":{"next":null},"_results":[${results}]}`;
}

function failure(read: () => unknown): ServiceError {
  try {
    read();
  } catch (error) {
    if (error instanceof ServiceError) return error;
    throw error;
  }
  throw new Error('it was read');
}

/** Lists within lists. */
function nested(levels: number): string {
  return '['.repeat(levels) + ']'.repeat(levels);
}

test.each([
  ['records without anything', '{},'],
  ['empty lists', '[],'],
  ['numbers', '1,'],
  ['lists within lists', '['],
])('a text of many megabytes of %s is refused before it is made', (_what, value) => {
  const text = pageWith(`${value.repeat((16 * MEGABYTE) / value.length)}1`);
  const before = process.memoryUsage().heapUsed;
  const error = failure(() => readJson(text, 'a page'));
  // The text itself is laid out in one piece when it is first read.
  expect(process.memoryUsage().heapUsed - before).toBeLessThan(24 * MEGABYTE);
  expect(error).toMatchObject({ remedy: 'wait' });
  expect(error.message).toContain('more than 500000 values');
});

test('what is large, but not more than it looks, is read', () => {
  const record = { id: 'a', text: `{[,"\\${'x{[,'.repeat(MEGABYTE)}`, end: '\\' };
  expect(readJson(JSON.stringify(record), 'a page')).toEqual(record);
});

test.each([
  ['a text that is cut short in the middle of a large string', `"${'x'.repeat(2 * MEGABYTE)}`],
  ['the same behind a backslash', `"${'x'.repeat(2 * MEGABYTE)}\\"`],
  ['one that is cut short in the middle of a list', `[${'"x",'.repeat(MEGABYTE / 4)}`],
])('%s is no JSON', (_what, text) => {
  expect(failure(() => readJson(text, 'a page')).message).toContain('not JSON');
});

test('depth alone is no harm', () => {
  const page = readListPage(Buffer.from(pageWith(`{"id":"deep","value":${nested(100_000)}}`)));
  expect(page.read().texts.map(String)).toEqual([`{"id":"deep","value":${nested(100_000)}}`]);
});

test('a hundred times the results that a page may have are refused', () => {
  const records = (count: number) => Array.from({ length: count }, (_, id) => `{"id":${id}}`).join(',');
  expect(readListPage(Buffer.from(pageWith(records(10_000)))).read().items.length).toBe(10_000);
  const error = failure(() => readListPage(Buffer.from(pageWith(records(10_001)))));
  expect(error).toMatchObject({ remedy: 'wait' });
  expect(error.message).toContain('more than 10000 results');
});
