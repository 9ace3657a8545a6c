import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { PAGE, promisesPage } from './write-promises.ts';

test('the page of promises is what `npm run promises` writes', () => {
  const page = readFileSync(PAGE, 'utf8');
  expect(page, 'run `npm run promises`').toBe(promisesPage(page));
});
