import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { API, ROUTES } from '../../src/contract/api/api.ts';
import { GUARDS } from '../../src/contract/guards.ts';
import { LEDGER } from '../../src/sandbox/ledger/ledger.ts';
import { ledgerMarkdown } from '../../src/sandbox/ledger/markdown.ts';
import { MEASURED } from '../../src/sandbox/ledger/measured.ts';
import { locate, SECTIONS } from '../../src/sandbox/ledger/rule.ts';
import { hasTest } from '../support/cited-tests.ts';
import { startSandbox } from './test-sandbox.ts';

const ROOT = join(import.meta.dirname, '..', '..');

test('the ledger has no open row: each rule has a case', () => {
  expect(LEDGER.filter(({ cases }) => cases.length === 0).map(({ id }) => id)).toEqual([]);
  expect(LEDGER.length).toBeGreaterThan(200);
});

test('every rule has an id of its own, and no section is without rules', () => {
  const ids = LEDGER.map(({ id }) => id);
  expect(ids.filter((id, place) => ids.indexOf(id) !== place)).toEqual([]);
  expect(LEDGER.filter(({ rule }) => rule.length < 10)).toEqual([]);
  expect(new Set(LEDGER.map(({ section }) => section)).size).toBe(SECTIONS.length);
});

test('every test that a rule cites is there, under this very title', () => {
  const lost = LEDGER.flatMap(({ id, cases }) => cases.map((cited) => ({ id, cited }))).filter(
    ({ cited }) => {
      const { file, title } = locate(cited);
      return !hasTest(file, title);
    },
  );
  expect(lost.map(({ id, cited }) => `${id}: ${cited}`)).toEqual([]);
});

test('every route, every asynchronous form and every guard of a route was exercised by a test', () => {
  const needed = ROUTES.flatMap(([operation, { async, guard }]) => [
    operation,
    ...(async === true ? [`${operation} async`] : []),
    ...(guard === undefined ? [] : [`${operation} guard`]),
  ]);
  expect(needed.filter((key) => (MEASURED[key]?.length ?? 0) === 0)).toEqual([]);
  expect(Object.keys(MEASURED).filter((key) => !((key.split(' ')[0] as string) in API))).toEqual([]);
});

test('every guard of the table is some route’s', () => {
  const used = new Set(ROUTES.map(([, { guard }]) => guard?.guard));
  expect(Object.keys(GUARDS).filter((name) => !used.has(name as keyof typeof GUARDS))).toEqual([]);
});

test('the table in the documentation is up to date', () => {
  expect(readFileSync(join(ROOT, 'docs/fidelity.md'), 'utf8'), 'written by `npm run ledger`').toBe(
    ledgerMarkdown(),
  );
});

test('the sandbox shows the ledger on a page', async () => {
  const { sandbox } = await startSandbox();
  const response = await fetch(`${sandbox.origin}/fidelity`);
  const html = await response.text();
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  for (const { section } of LEDGER) expect(html).toContain(section.replaceAll('"', '&quot;'));
  expect(html.match(/<tr/g)?.length).toBeGreaterThan(LEDGER.length);
});
