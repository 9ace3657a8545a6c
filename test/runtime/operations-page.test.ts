import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

const PAGE = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** What looks like a metric in the page's code, and in its rules. */
function named(text: string): Set<string> {
  const code = [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].map(([part]) => part).join('\n');
  return new Set(code.match(/\b(?:service|sync|token|refresh|app|http|event|figures|process)_[a-z_]+[a-z]/g));
}

test('the page on operations names every metric of the app, and none that there is not', async () => {
  const metrics = createMetrics(() => Promise.reject(new Error('not read here')));
  metrics.close();
  // Its types call the type a number; it is the word.
  const described = (await metrics.registry.getMetricsAsJSON()).map(({ name, type }) => ({
    name,
    type: String(type),
  }));
  const known = new Set(
    described.flatMap(({ name, type }) =>
      type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
  const names = named(PAGE);
  expect([...names].filter((name) => !known.has(name))).toEqual([]);
  const own = described.map(({ name }) => name).filter((name) => !/^(process|nodejs)_/.test(name));
  expect(own.length).toBeGreaterThan(15);
  expect(own.filter((name) => !names.has(name))).toEqual([]);
});

test('the log lines that the page explains are those of the sources', () => {
  const sources = [
    'src/sync/run-slice.ts',
    'src/sync/slice-failure.ts',
    'src/sync/own-logic-parking.ts',
    'src/sync/page.ts',
    'src/sync/deletions.ts',
    'jobs/keep-index.ts',
    'jobs/rotate-tokens.ts',
    'jobs/take-over.ts',
    'jobs/foreign-jobs.ts',
    'jobs/workers.ts',
    'src/runtime/redis.ts',
    'src/store/watch-store.ts',
    'src/app.ts',
    'src/boot.ts',
  ]
    .map((path) => readFileSync(new URL(`../../${path}`, import.meta.url), 'utf8'))
    .join('\n');
  const [, table = ''] = /\| `msg` \| meaning \|\n([\s\S]*?)\n\n/.exec(PAGE) ?? [];
  const lines = table.split('\n').flatMap((row) => row.split(' | ')[0]?.match(/`[^`]+`/g) ?? []);
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.filter((line) => !sources.includes(`'${line.slice(1, -1)}'`))).toEqual([]);
});
