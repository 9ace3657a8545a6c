import { execFile } from 'node:child_process';
import { cpSync, globSync, mkdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { tempDir } from './support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '..');

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

test('the examples of README and docs compile where they belong', async () => {
  const dir = tempDir();
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
  for (const part of ['src', 'jobs', 'test', 'package.json'])
    cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  const examples = ['README.md', 'docs/handler.md', 'docs/resources.md'].flatMap((page) =>
    [...read(page).matchAll(/^```ts\n\/\/ ((?:src|test)\/integration\/\S+)\n([\s\S]*?)^```$/gm)].map(
      ([, path = '', code = ''], at) => ({ page, path, code, at }),
    ),
  );
  expect(examples.map(({ page }) => page)).toContain('README.md');
  const files = examples.map(({ page, path, code, at }) => {
    // There are several handlers.
    const file = path.replace(/handler\.ts$/, `handler-${dirname(page)}-${at}.ts`);
    mkdirSync(dirname(join(dir, file)), { recursive: true });
    writeFileSync(join(dir, file), code);
    return file;
  });
  const config = { extends: join(ROOT, 'tsconfig.json'), files, include: [] };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['--noEmit', '-p', dir]).catch((error) => error);
  // What they import is compiled with them, and has a check of its own.
  const errors = String(stdout).split('\n');
  expect(errors.filter((line) => files.some((file) => line.startsWith(file)))).toEqual([]);
});

test('the documentation names no script that there is not', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const pages = [
    'README.md',
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
