import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
/** Written by commands. */
const NOT_HAND_WRITTEN = ['docs/promises.md', 'docs/fidelity.md'];

function filesOf(...patterns: string[]): string[] {
  const files = globSync(patterns, { cwd: ROOT }).map((path) => path.replaceAll('\\', '/'));
  return files.filter((path) => statSync(join(ROOT, path)).isFile());
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

test.each([
  [
    'src and jobs',
    21_370,
    filesOf('{src,jobs}/**').filter((path) => !/^src\/(contract|sandbox)\//.test(path)),
  ],
  ['src/contract', 1_905, filesOf('src/contract/**')],
  ['src/sandbox', 7_900, filesOf('src/sandbox/**')],
  ['views', 1_910, filesOf('views/**')],
  ['test', 27_808, filesOf('test/**').filter((path) => !path.startsWith('test/bench/'))],
  ['test/bench', 2_170, filesOf('test/bench/**')],
  ['README.md', 150, ['README.md']],
])('%s has at most %d lines', (_part, most, files) => {
  const lines = files.reduce((sum, path) => sum + read(path).split('\n').length - 1, 0);
  expect(lines).toBeGreaterThan(most / 3);
  expect(lines).toBeLessThanOrEqual(most);
});

test('the hand-written documentation has at most 77 KB', () => {
  const pages = filesOf('docs/*.md').filter((path) => !NOT_HAND_WRITTEN.includes(path));
  const bytes = pages.reduce((sum, path) => sum + Buffer.byteLength(read(path)), 0);
  expect(bytes).toBeLessThanOrEqual(77 * 1024);
});
