import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

interface LockFile {
  packages: Record<
    string,
    { version?: string; resolved?: string; integrity?: string; link?: boolean; gypfile?: boolean }
  >;
}

const ROOT = join(import.meta.dirname, '..');
const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as LockFile;
const manifest = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as Record<
  string,
  Record<string, string>
>;
const HINT = 'write the lock file by `npm run lock`';

test('npm is told that better-sqlite3 needs no compiler: every rewrite by npm itself drops this', () => {
  expect(packages['node_modules/better-sqlite3']?.gypfile, HINT).toBe(false);
});

test('it names no registry: each machine uses its own, and the checksums decide', () => {
  const named = Object.entries(packages).filter(([, entry]) => entry.resolved !== undefined);
  expect(
    named.map(([path]) => path),
    HINT,
  ).toEqual([]);
  const unsummed = Object.entries(packages).filter(
    ([path, { integrity, link }]) => path !== '' && !integrity && !link,
  );
  expect(unsummed.map(([path]) => path)).toEqual([]);
});

test('it belongs to package.json, which names every version exactly', () => {
  const wanted = { ...manifest.dependencies, ...manifest.devDependencies };
  for (const [name, version] of Object.entries(wanted)) {
    expect(version, name).toMatch(/^\d+\.\d+\.\d+(-[\w.]+)?$/);
    expect(packages[`node_modules/${name}`]?.version, name).toBe(version);
  }
});
