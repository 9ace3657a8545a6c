import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { hasTest } from './support/cited-tests.ts';

const PROMISES = 34;

interface Row {
  number: number;
  promise: string;
  cited: string[];
  /** What stands among the tests and is none. */
  others: string[];
}

const TABLE = readFileSync(join(import.meta.dirname, '../docs/trust.md'), 'utf8');

const rows: Row[] = [...TABLE.matchAll(/^\| (\d+) \| (.*?) \| (.*) \|$/gm)].map(
  ([, number, promise = '', tests = '']) => ({
    number: Number(number),
    promise,
    cited: [...tests.matchAll(/`([^`]+)`/g)].map(([, cited = '']) => cited),
    others: tests
      .split('<br>')
      .map((text) => text.trim())
      .filter((text) => !/^`[^`]+`$/.test(text)),
  }),
);

test('every promise has its row, in order', () => {
  expect(rows.map(({ number }) => number)).toEqual(Array.from({ length: PROMISES }, (_, index) => index + 1));
  expect(rows.filter(({ promise }) => promise.length < 20)).toEqual([]);
});

test('every row leads to tests, and to nothing else: no part of a promise is left open', () => {
  expect(rows.filter(({ cited, others }) => cited.length === 0 || others.length > 0)).toEqual([]);
});

test('every test that is cited is there, under this very title', () => {
  const cited = rows.flatMap((row) => row.cited.map((text) => ({ number: row.number, text })));
  const lost = cited.filter(({ text }) => {
    const [file = '', title = ''] = text.split(' › ');
    return !hasTest(file, title);
  });
  expect(cited.length).toBeGreaterThan(PROMISES);
  expect(lost.map(({ number, text }) => `${number}: ${text}`)).toEqual([]);
});
