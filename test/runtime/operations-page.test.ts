import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

const PAGE = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** What looks like a metric in the page's code, and in its rules. */
function named(text: string): Set<string> {
  const code = [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].map(([part]) => part).join('\n');
  return new Set(code.match(/\bpartner_app_(?!nodejs_)[a-z_]+[a-z]/g));
}

test('the page on operations names every metric of the app, and none that there is not', async () => {
  const metrics = createMetrics([], {
    store: () => Promise.reject(new Error('not read here')),
    jobs: () => Promise.reject(new Error('not read here')),
    sweepLateMs: () => 0,
    workers: () => undefined,
    isReady: () => Promise.reject(new Error('not read here')),
  });
  const { body } = await metrics.scrape();
  const described = [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)].map(([, name = '', type]) => ({
    name,
    type,
  }));
  const known = new Set(
    described.flatMap(({ name, type }) =>
      type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
  expect(described.filter(({ name }) => !name.startsWith('partner_app_'))).toEqual([]);
  const names = named(PAGE);
  expect([...names].filter((name) => !known.has(name))).toEqual([]);
  const own = described
    .map(({ name }) => name)
    .filter((name) => !/^partner_app_(process|nodejs)_/.test(name));
  expect(own.length).toBeGreaterThan(15);
  expect(own.filter((name) => !names.has(name))).toEqual([]);
});

test('the page has twelve alarms, and says for each what to do', () => {
  const alarms = [...PAGE.matchAll(/^ {6}- alert: (\w+)\n {8}expr: .*\n(?: {10}.*\n)* {8}for: \d+[mh]\n/gm)];
  const names = alarms.map(([, name = '']) => name);
  expect(names).toHaveLength(12);
  expect(PAGE.match(/- alert:/g)).toHaveLength(12);
  const headings = [...PAGE.matchAll(/^### (.*)$/gm)].flatMap(([, heading = '']) => heading.split(', '));
  expect(headings).toEqual(names);
});
