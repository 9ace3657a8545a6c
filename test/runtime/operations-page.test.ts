import { readdirSync, readFileSync } from 'node:fs';
import { expect, test } from 'vitest';
import { createMetrics } from '../../src/runtime/metrics.ts';

const PAGE = readFileSync(new URL('../../docs/operations.md', import.meta.url), 'utf8');

/** What looks like a metric in the page's code, and in its rules. */
function named(text: string): Set<string> {
  const code = [...text.matchAll(/```[\s\S]*?```|`[^`\n]+`/g)].map(([part]) => part).join('\n');
  return new Set(code.match(/\b(?:service|sync|token|refresh|app|http|event|figures|process)_[a-z_]+[a-z]/g));
}

test('the page on operations names every metric of the app, and none that there is not', async () => {
  const metrics = createMetrics([], {
    store: () => Promise.reject(new Error('not read here')),
    jobs: () => Promise.reject(new Error('not read here')),
    upkeepLateMs: () => Promise.reject(new Error('not read here')),
    workers: () => undefined,
    answers: () => 0,
    unusableConnections: () => 0,
    isReady: () => Promise.reject(new Error('not read here')),
  });
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

const ROOT = new URL('../../', import.meta.url);

/** Every source that runs where the app is deployed, by its path. */
const SOURCES = new Map(
  ['src', 'jobs']
    .flatMap((dir) =>
      readdirSync(new URL(dir, ROOT), { recursive: true, encoding: 'utf8' }).map((path) => `${dir}/${path}`),
    )
    .filter((path) => path.endsWith('.ts') && !/^src\/(?:sandbox|demo)\b/.test(path))
    .map((path) => [path, readFileSync(new URL(path, ROOT), 'utf8')]),
);

/** The lines of the page's table. */
function explained(): string[] {
  const [, table = ''] = /\| `msg` \| meaning \|\n([\s\S]*?)\n\n/.exec(PAGE) ?? [];
  return table
    .split('\n')
    .flatMap((row) => row.split(' | ')[0]?.match(/`[^`]+`/g) ?? [])
    .map((line) => line.slice(1, -1));
}

/** Lines whose words are no text where they are logged, by what stands there instead. */
const NAMED_ELSEWHERE: Record<string, string[]> = {
  what: ['uncaught exception', 'unhandled rejection'],
  // The pages of errors are logged by their titles.
  'error.title': [...SOURCES].flatMap(([path, source]) =>
    path.startsWith('src/web/')
      ? [...source.matchAll(/\b5\d\d,\s*(?:title: )?'([^']+)'/g)].map(([, title = '']) => title)
      : [],
  ),
};

/** What is logged at the level of a warning or above. */
function warnings(): string[] {
  return [...SOURCES].flatMap(([path, source]) =>
    [
      ...source.matchAll(
        /[lL]og(?:ger)?(?:\.(?:warn|error|fatal)|\[[^\]]*'(?:warn|error|fatal)'[^\]]*\])\(/g,
      ),
    ].flatMap((call) => {
      const parts = argumentsAt(source, call.index + call[0].length);
      const message = parts.at(-1) ?? '';
      const [, text] = /^'((?:[^'\\]|\\.)*)'$/.exec(message) ?? [];
      return text !== undefined ? [text] : (NAMED_ELSEWHERE[message] ?? [`${path}: ${message}`]);
    }),
  );
}

/** The arguments of a call, split at its own commas, as they are written. */
function argumentsAt(source: string, from: number): string[] {
  const parts = [''];
  let depth = 0;
  let quote = '';
  for (const character of source.slice(from)) {
    if (quote === '' && depth === 0 && character === ')') break;
    if (quote !== '') quote = character === quote ? '' : quote;
    else if (`'"\``.includes(character)) quote = character;
    else if ('([{'.includes(character)) depth += 1;
    else if (')]}'.includes(character)) depth -= 1;
    if (quote === '' && depth === 0 && character === ',') parts.push('');
    else parts[parts.length - 1] += character;
  }
  return parts.map((part) => part.trim()).filter((part) => part !== '');
}

test('the log lines that the page explains are those of the sources', () => {
  const all = [...SOURCES.values()].join('\n');
  const lines = explained();
  expect(lines.length).toBeGreaterThan(5);
  expect(lines.filter((line) => !all.includes(`'${line}'`))).toEqual([]);
});

test('the page explains every log line that warns', () => {
  const lines = new Set(explained());
  const found = warnings();
  expect(found.length).toBeGreaterThan(20);
  // A line that is a whole sentence explains itself.
  expect(found.filter((line) => !line.endsWith('.') && !lines.has(line))).toEqual([]);
});
