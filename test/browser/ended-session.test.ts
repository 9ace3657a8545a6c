import type { BrowserContext, Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { openBrowser } from '../support/browser.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWeb } from '../web/start-web.ts';

const web = await startWeb({ live: { intervalMs: 50, keepAliveMs: 100, maxStreamsPerSession: 2 } });
const browser = await openBrowser();

async function install(page: Page, id: string): Promise<void> {
  const begun = await page.request.get(`${web.url}/install`, { maxRedirects: 0 });
  const state = new URL(begun.headers().location ?? '').searchParams.get('state');
  await page.goto(`${web.url}/oauth/callback?state=${state}&code=${id}`);
}

const isLive = (page: Page) => page.locator('[data-live-mark]', { hasText: /^Live$/ }).waitFor();

/** A browser of its own, on the dashboard of a company that it has installed, which is live. */
async function openDashboard(id = 'ins_1'): Promise<{ context: BrowserContext; page: Page }> {
  const context = await browser.newContext();
  const page = await context.newPage();
  await install(page, id);
  await isLive(page);
  return { context, page };
}

async function logOutOthers(page: Page): Promise<void> {
  await page.locator('summary', { hasText: 'Log out everywhere else' }).click();
  await page.getByRole('button', { name: 'Log out everywhere else' }).click();
  await page.getByText('Every other browser is logged out of this company.').waitFor();
}

/** How often a page is loaded from now on. */
function countLoads(page: Page): () => number {
  let loads = 0;
  page.on('load', () => loads++);
  return () => loads;
}

test.each([
  [
    'another browser logs it out',
    async () => {
      await logOutOthers((await openDashboard()).page);
    },
  ],
  [
    'it is logged out in another tab',
    async (context: BrowserContext) => {
      const tab = await context.newPage();
      await tab.goto(web.url);
      await tab.getByRole('button', { name: 'Log out' }).click();
      await tab.getByRole('button', { name: 'Log out' }).waitFor({ state: 'detached' });
    },
  ],
  ['Redis has lost its session', async () => void (await web.redis.flushall())],
])('an open page shows by itself that there is nothing to see any more: %s', async (_what, end) => {
  const { context, page } = await openDashboard();
  await end(context);
  await page.getByText('There is nothing at this address that this browser may see.').waitFor();
  expect(await page.locator('[data-live]').count()).toBe(0);
});

test.each([
  ['another tab installs a company', (tab: Page) => install(tab, 'ins_2')],
  [
    'another tab logs out everywhere else',
    async (tab: Page) => {
      await tab.goto(`${web.url}/instances/ins_1`);
      await logOutOthers(tab);
    },
  ],
])('an open page has forms that work again, after loading itself once: %s', async (_what, replace) => {
  const { context, page } = await openDashboard();
  const loads = countLoads(page);
  await replace(await context.newPage());
  await waitFor(() => loads() > 0);
  await isLive(page);
  expect(loads()).toBe(1);
  await page.getByRole('button', { name: 'Sync now' }).click();
  await page.getByText('A sync has been started.').waitFor();
});

test('a page that is refused a stream stays, says why, and comes back when there is room', async () => {
  const { context } = await openDashboard('ins_3');
  const other = await context.newPage();
  await other.goto(`${web.url}/instances/ins_3`);
  await isLive(other);
  const page = await context.newPage();
  await page.goto(`${web.url}/instances/ins_3`);
  const loads = countLoads(page);
  await page.getByText('Not live: too many pages are open').waitFor();
  await other.close();
  await isLive(page);
  expect(loads()).toBe(0);
});

test('a page that has connected anew meanwhile does not heed an old answer that there is nothing', async () => {
  const { page } = await openDashboard('ins_4');
  const held = Promise.withResolvers<() => Promise<void>>();
  // The stream is refused once; the question why is not answered before the page has it.
  await page.route('**/live', (route) => held.resolve(() => route.fulfill({ status: 404 })), { times: 1 });
  await page.route('**/live', (route) => route.fulfill({ status: 404 }), { times: 1 });
  const again = (persisted: boolean) =>
    page.evaluate(`dispatchEvent(new PageTransitionEvent('pageshow', { persisted: ${persisted} }))`);
  const loads = countLoads(page);
  await again(true);
  const answer = await held.promise;
  await again(true);
  await isLive(page);
  // It may be given up by now.
  await answer().catch(() => undefined);
  await again(false);
  await isLive(page);
  expect(loads()).toBe(0);
});
