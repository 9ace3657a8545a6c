import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';

const ROOT = join(import.meta.dirname, '..');
const REVIEW = readFileSync(join(ROOT, 'docs/dependencies.md'), 'utf8');
const { dependencies, devDependencies } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  dependencies: Record<string, string>;
  devDependencies: Record<string, string>;
};

/** The packages of the review's tables: the first cell of a row. */
const reviewed = [...REVIEW.matchAll(/^\| (`[^|]*`) \|/gm)].flatMap(([, cell = '']) =>
  [...cell.matchAll(/`([^`]+)`/g)].map(([, name]) => name),
);

test('every direct dependency is reviewed in the docs, and nothing that is gone', () => {
  expect(reviewed.toSorted()).toEqual(
    [...Object.keys(dependencies), ...Object.keys(devDependencies)].toSorted(),
  );
});

test('the review counts the packages that run in production, and their licences', () => {
  const { packages } = JSON.parse(readFileSync(join(ROOT, 'package-lock.json'), 'utf8')) as {
    packages: Record<string, { dev?: boolean; license: string }>;
  };
  const installed = Object.entries(packages).filter(([path, { dev }]) => path !== '' && dev !== true);
  const counts = Map.groupBy(installed, ([, { license }]) => license);
  const licences = [...counts]
    .toSorted(([, one], [, other]) => other.length - one.length)
    .map(([licence, those]) => `${licence} (${those.length})`);
  expect(REVIEW).toContain(`${installed.length} packages`);
  for (const licence of licences) expect(REVIEW).toContain(licence);
});

test('versions are exact, so that an update is somebody’s decision', () => {
  const loose = Object.entries({ ...dependencies, ...devDependencies }).filter(
    ([, version]) => !/^\d+\.\d+\.\d+$/.test(version),
  );
  expect(loose).toEqual([]);
});
