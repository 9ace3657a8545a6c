import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { fidelityPage, PAGE, SECTIONS } from './support/write-fidelity.ts';

test('docs/fidelity.md is what `npm run fidelity` writes, with a rule in every section', () => {
  const page = fidelityPage();
  expect(readFileSync(PAGE, 'utf8')).toBe(page);
  expect(page.match(/^\|---\|---\|---\|\n\| /gm)).toHaveLength(SECTIONS.length);
});

test('A rule has a title of at most 80 characters', () => {
  const titles = fidelityPage().matchAll(/^\| ([^`|][^|]*) \| (?:specified|our choice) /gm);
  expect([...titles].map(([, title = '']) => title).filter(({ length }) => length > 80)).toEqual([]);
});
