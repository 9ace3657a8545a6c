import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { openBrowser } from '../support/browser.ts';
import { type StartedWeb, startWeb } from '../web/start-web.ts';
import { at, instanceStatus, listStatus, NOW, runJson } from '../web/status-fixtures.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const PASSWORD = 'a password of the tests';

const HANDLER = { pending: 12, dead_letters: 2, last_error: 'No leads.', next_try_at: at(30_000) };
const problems = {
  rejected: 7,
  rejected_records: [{ reason: 'It has no id.', excerpt: '{"name":"x"}', length: 5_000, at: at(0) }],
  dead_letters: [{ id: 'crd_1', error: 'No leads.', at: at(0) }],
};
const TROUBLE = {
  kind: 'dead_letters',
  resource: 'contacts',
  count: 2,
  detail: null,
  since: at(-90_000),
} as const;

/** Everything that the pages can show at once. */
const busy = instanceStatus({
  name: 'w'.repeat(80),
  resources: {
    contacts: listStatus({ state: 'failed', error_kind: 'bad_answer', handler: HANDLER, problems }),
    conversations: listStatus({ held_deletions: 600, handler: HANDLER, paused: true }),
  },
});
const SHOWN = {
  ins_1: busy,
  ins_2: instanceStatus({ id: 'ins_2', status: 'needs_reauthorization' }),
  ins_3: instanceStatus({ id: 'ins_3', status: 'disconnected', has_copy: false }),
  ins_4: instanceStatus({
    id: 'ins_4',
    resources: { contacts: listStatus({ state: 'running', records: 9 }) },
  }),
};

const PAGES = [
  ...['/', '/nowhere', '/oauth/callback?state=x&code=y', '/instances/ins_9'],
  ...Object.keys(SHOWN).map((id) => `/instances/${id}?done=sync`),
  ...['/instances/ins_1/runs', '/instances/ins_1/problems', '/instances/ins_1/contacts'],
  ...['/instances/ins_1/settings', '/instances/ins_2/settings', '/instances/ins_3/settings'],
  ...[`/instances/ins_1/contacts?q=${'w'.repeat(199)}`, '/instances/ins_1/contacts/crd_1'],
  ...['/ops', '/ops/instances/ins_1', '/ops/help'],
];

let web: StartedWeb;
beforeAll(async () => {
  const overview = async () => ({
    instances: Object.values(SHOWN).map((status) => ({
      ...status,
      status_since: at(0),
      troubles: [TROUBLE],
    })),
    attention: 3,
    paused: 1,
    troubles: { authorization: 1, token: 0, failing: 0, held: 1, dead_letters: 1, outbox: 0, lagging: 0 },
    page: 1,
    total: 4,
    states: { active: 2 },
    lists: { idle: 1 },
    queues: [{ name: 'sync', counts: { active: 1 } }],
    workers: [{ id: 'w1', version: '0.1.0', startedAt: NOW - 100_000, at: NOW - 50_000, delivery: 'ready' }],
  });
  web = await startWeb({
    isSandbox: true,
    operations: { password: PASSWORD, overview, troubles: async () => [TROUBLE] },
  });
  for (const [id, status] of Object.entries(SHOWN)) web.domain.instances.set(id, status);
  const none = { runs: 24, failed: 1, created: 0, changed: 0, deleted: 0, first_copy: 0 };
  const days = Array.from({ length: 30 }, (_, ago) => {
    return { day: at(-ago * 86_400_000).slice(0, 10), ...none, created: ago * 7, deleted: ago };
  });
  web.domain.dayRows = { contacts: days.reverse() };
  web.domain.runs = { contacts: [runJson({ id: 2, state: 'failed', error_kind: 'timeout' }), runJson()] };
  const document = JSON.stringify({
    id: 'crd_1',
    name: 'שלום',
    handles: [{ handle: 'a@b.c' }],
    created_at: 1_749_556_800,
  });
  const record = { id: 'crd_1', document, isCut: false, updatedAt: 0, deletedAt: null };
  web.domain.records.set('ins_1/contacts', [record]);
});

/** A browser that sees every instance, and knows the operator's password. */
async function openPage(options: object): Promise<Page> {
  const browser = await openBrowser();
  // The policy of the pages would refuse the checker's script.
  const context = await browser.newContext({
    ...options,
    bypassCSP: true,
    httpCredentials: { username: 'x', password: PASSWORD },
  });
  for (const id of Object.keys(SHOWN)) {
    const begun = await context.request.get(`${web.url}/install`, { maxRedirects: 0 });
    const state = new URL(begun.headers().location ?? '').searchParams.get('state');
    await context.request.get(`${web.url}/oauth/callback?state=${state}&code=${id}`);
  }
  return context.newPage();
}

/** What axe finds wrong with a page, with everything on it opened. */
async function violations(page: Page): Promise<string[]> {
  for (const summary of await page.locator('summary').all()) await summary.click();
  await page.evaluate(AXE);
  const found = (await page.evaluate('axe.run()')) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

describe.each([
  ['on a desktop', { viewport: { width: 1_280, height: 900 } }],
  ['on a phone', { viewport: { width: 360, height: 740 }, isMobile: true }],
  ['in forced colours', { viewport: { width: 1_280, height: 900 }, forcedColors: 'active' }],
  ['in the dark', { viewport: { width: 1_280, height: 900 }, colorScheme: 'dark' }],
])('%s', (_where, options) => {
  let page: Page;
  beforeAll(async () => {
    page = await openPage(options);
  });

  test.each(PAGES)('%s is accessible, and scrolls in one direction', async (path) => {
    await page.goto(web.url + path);
    expect(await violations(page)).toEqual([]);
    const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
    expect(overflow).toBeLessThanOrEqual(0);
  });
});
