import { readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';
import { TROUBLES } from '../../src/store/troubles.ts';
import { troubleLines } from '../../src/web/view/trouble-view.ts';

const RULES = readFileSync(new URL('../../monitoring/alerts.yml', import.meta.url), 'utf8');
const PAGE = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** What looks like a metric in the page's code, and in its rules. */
function named(text: string): Set<string> {
  const code = [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].map(([part]) => part).join('\n');
  return new Set(code.match(/\bpartner_app_[a-z_]+[a-z]/g));
}

/** The names of all metrics of a process. */
async function metricsOf(): Promise<Set<string>> {
  const unread = () => Promise.reject(new Error('not read here'));
  const sources = {
    store: unread,
    jobs: unread,
    isReady: unread,
    sweepLateMs: () => 0,
    workers: () => undefined,
  };
  const { body } = await createMetrics([], sources, '1.0.0').scrape();
  const described = [...body.matchAll(/^# TYPE (\S+) (\S+)$/gm)];
  return new Set(
    described.flatMap(([, name = '', type]) =>
      type === 'histogram' ? [name, `${name}_bucket`, `${name}_sum`, `${name}_count`] : [name],
    ),
  );
}

test('the page on operations names every metric of the app, and none that there is not', async () => {
  const known = await metricsOf();
  const names = named(PAGE);
  expect([...names].filter((name) => !known.has(name))).toEqual([]);
  const own = [...known].filter((name) => /^partner_app_(?!.*_(?:bucket|sum|count)$)/.test(name));
  expect(own.length).toBeGreaterThan(15);
  expect(own.filter((name) => !names.has(name))).toEqual([]);
  expect([...known].filter((name) => !/^(?:partner_app|process|nodejs)_/.test(name))).toEqual([]);
});

test('each alarm asks for metrics that there are, and leads to what to do', async () => {
  const alarms = [...RULES.matchAll(/^ {6}- alert: (\w+)\n {8}expr: .*\n(?: {10}.*\n)* {8}for: \d+[mh]\n/gm)];
  const names = alarms.map(([, name = '']) => name);
  expect(names).toHaveLength(13);
  expect(RULES.match(/- alert:/g)).toHaveLength(13);
  const headings = [...PAGE.matchAll(/^### (.*)$/gm)].map(([, heading = '']) => heading);
  expect(headings.flatMap((heading) => heading.split(', '))).toEqual(names);
  const anchors = headings.map((heading) => heading.toLowerCase().replaceAll(', ', '-'));
  const runbooks = [...RULES.matchAll(/^ {10}runbook_url: docs\/operations\.md#(\S+)$/gm)].map(
    ([, anchor]) => anchor,
  );
  expect(runbooks).toHaveLength(13);
  expect([...new Set(runbooks)]).toEqual(anchors);
  const known = await metricsOf();
  const asked = RULES.match(/\bpartner_app_\w+/g) ?? [];
  expect(asked.length).toBeGreaterThan(12);
  expect(asked.filter((name) => !known.has(name))).toEqual([]);
  // What the operator's page says to do leads there, too.
  const none = Object.fromEntries(
    TROUBLES.map((kind) => [kind, { kind, resource: null, count: 1, detail: null, since: null }]),
  );
  for (const { help } of troubleLines(Object.values(none), [], 0))
    expect(anchors).toContain(help.split('#')[1]);
});
