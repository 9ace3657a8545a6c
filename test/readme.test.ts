import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

test('every script that the documentation names exists', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const pages = [
    'README.md',
    'AGENTS.md',
    'CONTRIBUTING.md',
    '.env.example',
    'Dockerfile',
    'Procfile',
    'compose.yaml',
    ...globSync('docs/*.md', { cwd: ROOT }),
  ];
  const named = pages.flatMap((page) =>
    [...read(page).matchAll(/npm run ([\w:]+)/g)].map(([, name = '']) => name),
  );
  expect(named).toContain('sandbox');
  expect(named.filter((name) => !(name in scripts))).toEqual([]);
});

test('CONTRIBUTING names every direct dependency', () => {
  const { dependencies, devDependencies } = JSON.parse(read('package.json'));
  const names = Object.keys({ ...dependencies, ...devDependencies }).filter(
    (name) => !name.startsWith('@types/'),
  );
  const page = read('CONTRIBUTING.md');
  expect(names.filter((name) => !page.includes(`\`${name}\``))).toEqual([]);
});
