import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { openBrowser } from '../support/browser.ts';
import { isSynced } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const testApp = await startTestApp({ sandbox: { latencyMs: 250 } });
const { control, config } = testApp;
const browser = await openBrowser();

/** Opens a page that notes whatever the browser complains about. */
async function openPage(options: Parameters<typeof browser.newPage>[0] = {}) {
  const page = await browser.newPage(options);
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  return { page, complaints };
}

/** From the landing page by clicks alone to the dashboard. */
async function installByClicking(page: Page, company: string, teammate: string) {
  await page.goto(config.publicUrl);
  await page.getByRole('link', { name: 'Install', exact: true }).click();
  await page.getByRole('group', { name: company }).getByRole('radio', { name: teammate }).check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL('**/instances/*');
}

function administratorOf(company: Awaited<ReturnType<typeof control.addCompany>>): string {
  return company.teammates.find(({ is_admin }) => is_admin)?.name ?? '';
}

test('an administrator installs by clicking, watches the progress, searches, and disconnects', async () => {
  const company = await control.addCompany({
    name: 'Ravn & Co',
    plan: 'starter',
    contacts: 1_200,
    conversations: 300,
  });
  const { page, complaints } = await openPage();
  await installByClicking(page, company.name, administratorOf(company));
  await page.getByRole('heading', { name: company.name }).waitFor();

  // The numbers move while nobody reloads the page.
  const records = page.locator('[data-text="contacts.stored"]');
  let loads = 0;
  page.on('load', () => loads++);
  const seen = new Set<string>();
  await waitFor(
    async () => {
      seen.add((await records.textContent()) ?? '');
      return seen.has('1,200');
    },
    { what: 'all contacts on the dashboard' },
  );
  expect(seen.size).toBeGreaterThan(1);
  await page.getByText('Up to date').first().waitFor();
  expect(loads).toBe(0);

  await page.getByRole('link', { name: 'Browse and search' }).first().click();
  const firstRecord = page.locator('table.records tbody tr').first();
  const id = (await firstRecord.locator('td.id').textContent()) ?? '';
  await page.getByRole('searchbox').fill(id);
  await page.getByRole('button', { name: 'Search' }).click();
  await page.getByText('1 record with').waitFor();
  await firstRecord.getByRole('link').click();
  await page.locator('pre').getByText(`"${id}"`).first().waitFor();

  await page.goto(`${config.publicUrl}/`);
  await page.getByRole('link', { name: company.name }).click();
  await page.getByText('Disconnect this company').click();
  await page.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByRole('link', { name: 'Install again' }).waitFor();
  expect(complaints).toEqual([]);
});

test('an install that failed leaves no code in the address, and a reload of it says how to go on', async () => {
  const company = await control.addCompany({ name: 'Out of luck', plan: 'starter' });
  const { page } = await openPage();
  await page.goto(`${config.publicUrl}/install`);
  await control.fault({ match: { path: '/oauth/token' }, fault: { status: 500 }, times: 1 });
  await page.getByRole('group', { name: company.name }).getByRole('radio').first().check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.getByRole('heading', { name: 'The service did not answer as it should' }).waitFor();
  await page.waitForURL(`${config.publicUrl}/oauth/callback`);
  await page.reload();
  await page.getByRole('link', { name: 'Start again' }).click();
  await page.getByRole('button', { name: 'Approve' }).waitFor();
});

test('everything but the live part works without JavaScript', async () => {
  const company = await control.addCompany({
    name: 'No script',
    plan: 'starter',
    contacts: 60,
    conversations: 60,
  });
  const { page } = await openPage({ javaScriptEnabled: false });
  await installByClicking(page, company.name, administratorOf(company));
  await waitFor(
    async () => {
      await page.reload();
      return page.getByText('Up to date').first().isVisible();
    },
    { intervalMs: 300 },
  );
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('Paused').first().waitFor();
  await page.getByRole('button', { name: 'Resume' }).click();
  await page.getByRole('button', { name: 'Pause' }).waitFor();
});

test('what was synced is inert: markup in a record is text', async () => {
  const company = await control.addCompany({
    name: 'Hostile',
    plan: 'starter',
    contacts: 1,
    conversations: 1,
  });
  const name = '<script>document.title="stolen"</script><img src=x onerror="document.title=\'stolen\'">';
  const body = { _pagination: { next: null }, _links: { self: '' }, _results: [{ id: 'crd_evil', name }] };
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body },
    times: 1,
  });
  const { page, complaints } = await openPage();
  await installByClicking(page, company.name, administratorOf(company));
  await page.getByText('Up to date').first().waitFor();
  await page.getByRole('link', { name: 'Browse and search' }).first().click();
  await page.getByText('document.title').first().waitFor();
  await page.locator('table.records a').first().click();
  await page.locator('pre').first().waitFor();
  expect(await page.title()).not.toBe('stolen');
  expect(complaints).toEqual([]);
});

test('the pages fit a phone: nothing has to be scrolled sideways', async () => {
  const company = await control.addCompany({
    name: 'Pocket',
    plan: 'starter',
    contacts: 120,
    conversations: 60,
  });
  const { page } = await openPage({ viewport: { width: 360, height: 740 } });
  await installByClicking(page, company.name, administratorOf(company));
  const dashboard = page.url();
  const search = `${dashboard}/contacts?q=${'w'.repeat(199)}`;
  const addresses = [config.publicUrl, dashboard, `${dashboard}/contacts`, search, `${dashboard}/nothing`];
  for (const address of addresses) {
    await page.goto(address);
    const overflow = await page.evaluate('document.documentElement.scrollWidth - window.innerWidth');
    expect(overflow, address).toBeLessThanOrEqual(0);
  }
});

test('the button of the sandbox moves the clock to the refresh token’s last hours, and the token is renewed', async () => {
  const company = await control.addCompany({
    name: 'Half a year',
    plan: 'starter',
    contacts: 20,
    conversations: 20,
  });
  const { page, complaints } = await openPage();
  await installByClicking(page, company.name, administratorOf(company));
  const dashboard = page.url();
  await page.getByText('Up to date').first().waitFor();
  await page.goto(testApp.sandbox.origin);
  await page.getByRole('button', { name: /12 hours before/ }).click();
  await page.getByText('2027').first().waitFor();
  await page.goto(dashboard);
  await page.getByRole('button', { name: 'Sync now' }).click();
  const status = await waitFor(async () => {
    const now = await page.evaluate('fetch(location.pathname + "/status").then((answer) => answer.json())');
    const read = now as Parameters<typeof isSynced>[0];
    return isSynced(read) && read.token.rotations === 1 ? read : undefined;
  });
  expect(status.status).toBe('active');
  expect(complaints).toEqual([]);
});
