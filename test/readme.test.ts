import { execFile } from 'node:child_process';
import { cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { expect, test } from 'vitest';
import { tempDir } from './support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '..');

function read(path: string): string {
  return readFileSync(join(ROOT, path), 'utf8');
}

/** The README's examples of TypeScript. */
const EXAMPLES = [...read('README.md').matchAll(/^```ts\n([\s\S]*?)^```$/gm)].map(([, code = '']) => code);

test('the README’s example of calling the service is the code that a flow test runs', () => {
  const code = read('test/flows/own-logic-example.ts')
    .replace(/^import .*\n\n/, '')
    .replace(/^\/\/.*\n/m, '');
  expect(code).toContain('service.addConversationTags');
  expect(EXAMPLES).toContain(code);
});

test('the README’s examples compile where they are to be put', async () => {
  const places = [
    // In the place of the function that is there.
    { path: 'src/sync/own-logic.ts', is: /^export const onRecords/, put: /^export const onRecords[\s\S]*/m },
    // Before the end of the list.
    { path: 'src/sync/resources.ts', is: /^\{ name: /, put: /(?=^\];)/m },
  ];
  const dir = tempDir();
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'));
  for (const part of ['src', 'package.json']) cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  const files = EXAMPLES.map((example, at) => {
    const place = places.find(({ is }) => is.test(example));
    if (place === undefined) throw new Error(`Where is this put?\n${example}`);
    const source = read(place.path);
    expect(source).toMatch(place.put);
    const file = place.path.replace('.ts', `-${at}.ts`);
    writeFileSync(
      join(dir, file),
      source.replace(place.put, () => example),
    );
    return file;
  });
  expect(files.length).toBeGreaterThanOrEqual(3);
  const config = { extends: join(ROOT, 'tsconfig.json'), files, include: [] };
  writeFileSync(join(dir, 'tsconfig.json'), JSON.stringify(config));
  const tsc = join(ROOT, 'node_modules/.bin/tsc');
  const { stdout } = await promisify(execFile)(tsc, ['--noEmit', '-p', dir]).catch((error) => error);
  expect(stdout).toBe('');
});

test('the README names no script that there is not', () => {
  const { scripts } = JSON.parse(read('package.json')) as { scripts: Record<string, string> };
  const named = [...read('README.md').matchAll(/`npm run ([\w:]+)/g)].map(([, name]) => name);
  expect(named).toContain('sandbox');
  expect(named.filter((name) => name === undefined || !(name in scripts))).toEqual([]);
});
