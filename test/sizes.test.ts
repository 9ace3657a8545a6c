import { execFileSync } from 'node:child_process';
import { globSync, readFileSync, statSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
/** Written by commands. */
const NOT_HAND_WRITTEN = ['docs/promises.md', 'docs/fidelity.md'];

const { template }: { template?: { commit?: string } } = JSON.parse(read('package.json'));

/** In a fork: the files that it has left as the template had them. Only those are measured. */
const asInTemplate = template && unchangedSince(template.commit);

function unchangedSince(commit = ''): Set<string> {
  const list = (...args: string[]) => {
    try {
      return execFileSync('git', [...args, commit], { cwd: ROOT, encoding: 'utf8', stdio: 'pipe' }).split(
        '\n',
      );
    } catch {
      // A copy without the commit does not know its own files.
      return [];
    }
  };
  const changed = list('diff', '--name-only');
  return new Set(list('ls-tree', '-r', '--name-only').filter((path) => !changed.includes(path)));
}

function filesOf(...patterns: string[]): string[] {
  const files = globSync(patterns, { cwd: ROOT }).map((path) => path.replaceAll('\\', '/'));
  const measured = files.filter((path) => asInTemplate?.has(path) ?? true);
  return measured.filter((path) => statSync(join(ROOT, path)).isFile());
}

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** As CONTRIBUTING lists it: from the install's route to the handler's call. */
const mainPath = [...read('CONTRIBUTING.md').matchAll(/^\d+\. `([^`]+)`/gm)]
  .map(([, path = '']) => path)
  // A fork's own.
  .filter((path) => !path.startsWith('src/integration/'));

test.each([
  [
    'src and jobs',
    21_195,
    filesOf('{src,jobs}/**').filter((path) => !/^src\/(contract|sandbox)\//.test(path)),
  ],
  ['the main path', 5_070, mainPath],
  ['src/contract', 1_706, filesOf('src/contract/**')],
  ['src/sandbox', 8_435, filesOf('src/sandbox/**')],
  ['views', 1_910, filesOf('views/**')],
  ['test', 28_740, filesOf('test/**').filter((path) => !path.startsWith('test/bench/'))],
  ['test/bench', 2_170, filesOf('test/bench/**')],
  ['README.md', 150, filesOf('README.md')],
])('%s has at most %d lines', (_part, most, files) => {
  const lines = files.reduce((sum, path) => sum + read(path).split('\n').length - 1, 0);
  if (template === undefined) expect(lines).toBeGreaterThan(most / 3);
  expect(lines).toBeLessThanOrEqual(most);
});

test('the hand-written documentation has at most 76 KB', () => {
  const pages = filesOf('docs/*.md').filter((path) => !NOT_HAND_WRITTEN.includes(path));
  const bytes = pages.reduce((sum, path) => sum + Buffer.byteLength(read(path)), 0);
  expect(bytes).toBeLessThanOrEqual(76 * 1024);
});
