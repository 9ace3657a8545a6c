import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { tempDir } from '../../support/temp-dir.ts';
import { NotMeasuredError, readPanels } from './read-panels.ts';

test('what has not been measured yet cannot be drawn: it is said what to run first', () => {
  const dir = tempDir();
  const run = /run npm run bench -- limit first\.$/;
  expect(() => readPanels(dir)).toThrow(NotMeasuredError);
  expect(() => readPanels(dir)).toThrow(run);
  writeFileSync(join(dir, 'limit-calm-40.json'), '{}');
  expect(() => readPanels(dir)).toThrow(run);
  writeFileSync(join(dir, 'limit-guard.json'), '{}');
  expect(readPanels(dir).map(({ measured }) => measured)).toEqual([{}, {}]);
});
