import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { BrowserContext, Page } from 'playwright-core';
import { beforeAll, describe, expect, test } from 'vitest';
import { NOW } from '../store/test-store.ts';
import { openBrowser } from '../support/browser.ts';
import { makeTrouble, PASSWORD, type StartedWeb, startWeb } from '../web/start-web.ts';

const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');
const DAY_MS = 86_400_000;

/** The ids of the companies. The first one has everything that the pages can show at once. */
const ids: Record<string, string> = {};
const SHOWN = ['busy', 'refused', 'emptied', 'copying'];

/** Rules that depend on the colours alone, and on the layout. */
const COLOURS = ['color-contrast', 'link-in-text-block'];
const LAYOUT = ['meta-viewport', 'scrollable-region-focusable'];

const PAGES = [
  ...['/', '/nowhere', '/oauth/callback?state=x&code=y', '/instances/ins_9'],
  ...SHOWN.map((name) => `/instances/${name}?done=sync`),
  ...['/instances/busy/runs', '/instances/busy/problems', '/instances/busy/contacts'],
  ...['/instances/busy/settings', '/instances/refused/settings', '/instances/emptied/settings'],
  ...[`/instances/busy/contacts?q=${'w'.repeat(199)}`, '/instances/busy/contacts/0'],
  ...['/ops', '/ops/instances/busy', '/ops/help'],
];

const browser = await openBrowser();
let web: StartedWeb;
let session: Awaited<ReturnType<BrowserContext['storageState']>>;
beforeAll(async () => {
  web = await startWeb({ isSandbox: true });
  const { store } = web;
  web.process.queues = [{ name: 'sync', counts: { active: 1 } }];
  const worker = {
    id: 'w1',
    version: '0.1.0',
    startedAt: NOW - 100_000,
    at: NOW - 50_000,
    delivery: 'ready',
  };
  web.process.workers = [worker];
  const context = await browser.newContext();
  const page = await context.newPage();
  for (const name of SHOWN) ids[name] = await web.installedOn(page, name);
  session = await context.storageState();
  const set = (name: string, values: object) =>
    store.db.transact((tx) =>
      tx
        .updateTable('instances')
        .set(values)
        .where('id', '=', ids[name] ?? '')
        .execute(),
    );
  const { contacts } = await makeTrouble(store, ids.busy ?? '');
  const none = { list: contacts.list, runs: 24, failed: 1, changed: 0, first_copy: 0 };
  const days = Array.from({ length: 29 }, (_, ago) => ({ created: ago * 7, deleted: ago }));
  const rows = days.map((day, ago) => ({ ...none, ...day, day: Math.floor(NOW / DAY_MS) - ago - 1 }));
  await store.db.transact((tx) => tx.insertInto('days').values(rows).execute());
  await set('busy', { name: 'w'.repeat(80) });
  await set('refused', { status: 'needs_reauthorization' });
  await set('emptied', { status: 'disconnected' });
});

/** A browser that sees every instance, and knows the operator's password. */
async function openPage(options: object): Promise<Page> {
  const httpCredentials = { username: 'x', password: PASSWORD };
  // The policy of the pages would refuse the checker's script.
  const own = { storageState: session, bypassCSP: true, httpCredentials };
  return (await browser.newContext({ ...options, ...own })).newPage();
}

/** What axe finds wrong with a page, with everything on it opened. @param rules all by default */
async function violations(page: Page, rules?: string[]): Promise<string[]> {
  for (const summary of await page.locator('summary').all()) await summary.click();
  await page.evaluate(AXE);
  const found = (await page.evaluate(
    `axe.run(${JSON.stringify(rules === undefined ? {} : { runOnly: rules })})`,
  )) as {
    violations: { id: string; nodes: { html: string }[] }[];
  };
  return found.violations.flatMap(({ id, nodes }) => nodes.map(({ html }) => `${id}: ${html}`));
}

describe.each([
  ['on a desktop', { viewport: { width: 1_280, height: 900 } }, undefined],
  ['on a phone', { viewport: { width: 360, height: 740 }, isMobile: true }, LAYOUT],
  ['in forced colours', { viewport: { width: 1_280, height: 900 }, forcedColors: 'active' }, COLOURS],
  ['in the dark', { viewport: { width: 1_280, height: 900 }, colorScheme: 'dark' }, COLOURS],
])('%s', (_where, options, rules) => {
  let page: Page;
  beforeAll(async () => {
    page = await openPage(options);
  });

  test.each(PAGES)('%s is accessible, and scrolls in one direction', async (path) => {
    await page.goto(web.url + path.replace(/(?<=instances\/)[a-z]+/, (name) => ids[name] ?? name));
    expect(await violations(page, rules)).toEqual([]);
    const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
    expect(overflow).toBeLessThanOrEqual(0);
  });
});
