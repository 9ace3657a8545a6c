import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { isSynced, type Status } from '../acceptance/support/world.ts';
import { openBrowser } from '../support/browser.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** The record of each of these companies that the handler cannot take: the first one. */
const refused = new Map<string, string>();
const handed: string[] = [];

const testApp = await startTestApp({
  sandbox: { latencyMs: 250 },
  env: { HANDLER_RETRY_SECONDS: '0.1,0.1' },
  handler: async ({ companyId, changes }) => {
    for (const { id } of changes) {
      const first = refused.get(companyId ?? '');
      if (first === '') refused.set(companyId ?? '', `${id}`);
      if (first === '' || first === `${id}`) throw new Error('The lead is not known.');
      handed.push(`${companyId} ${id}`);
    }
  },
});
const { control, config } = testApp;
const browser = await openBrowser();

type Company = Awaited<ReturnType<typeof control.addCompany>>;

function addCompany(name: string, counts: { contacts?: number; conversations?: number } = {}) {
  return control.addCompany({ name, plan: 'starter', contacts: 20, conversations: 20, ...counts });
}

/** A person with a browser of their own, whose pages note what the browser complains about. */
async function openPerson(options: Parameters<typeof browser.newContext>[0] = {}) {
  const context = await browser.newContext(options);
  const complaints: string[] = [];
  context.on('page', (page) => {
    page.on('console', (message) => {
      if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
    });
    page.on('pageerror', (error) => complaints.push(error.message));
  });
  return { context, page: await context.newPage(), complaints };
}

/** Chooses at the consent page. */
async function consent(page: Page, { name, teammates }: Company, asAdministrator = true): Promise<void> {
  const teammate = teammates.find(({ is_admin }) => is_admin === asAdministrator)?.name ?? '';
  await page.getByRole('group', { name }).getByRole('radio', { name: teammate }).check();
  await page.getByRole('button', { name: 'Approve' }).click();
}

/** From the landing page by clicks alone to the dashboard. */
async function install(page: Page, company: Company): Promise<string> {
  await page.goto(config.publicUrl);
  await page.getByRole('link', { name: 'Install', exact: true }).click();
  await consent(page, company);
  await page.waitForURL('**/instances/*');
  return page.url();
}

async function installed(name: string, counts?: Parameters<typeof addCompany>[1]) {
  const company = await addCompany(name, counts);
  const person = await openPerson();
  const dashboard = await install(person.page, company);
  await person.page.getByText('Up to date').first().waitFor();
  return { company, dashboard, ...person };
}

/** What an open page of the app reads. */
async function statusOf(page: Page, dashboard: string): Promise<Status> {
  return (await page.request.get(`${dashboard}/status`)).json() as never;
}

async function runsOf(page: Page, dashboard: string): Promise<Record<'contacts', { changed: number }[]>> {
  const headers = { accept: 'application/json' };
  return (await page.request.get(`${dashboard}/runs`, { headers })).json() as never;
}

/** The card of a list. */
function card(page: Page, title: string) {
  return page.getByRole('region', { name: title, exact: true });
}

test('installs by clicking, watches the progress, searches, reads, and downloads', async () => {
  const company = await addCompany('Ravn & Co', { contacts: 1_200, conversations: 300 });
  const { page, complaints } = await openPerson();
  await install(page, company);
  await page.getByText(company.name).first().waitFor();

  // The numbers move while nobody reloads the page.
  let loads = 0;
  page.on('load', () => loads++);
  const seen = new Set<string>();
  await waitFor(async () => {
    seen.add((await card(page, 'Contacts').locator('strong').textContent()) ?? '');
    return seen.has('1,200');
  }, 'all contacts on the dashboard');
  expect(seen.size).toBeGreaterThan(1);
  await page.getByText('Up to date').first().waitFor();
  await page.getByText('The last sync read 1,200 records').waitFor();
  expect(loads).toBe(0);

  await page.getByRole('link', { name: 'Browse and search' }).first().click();
  const firstRecord = page.locator('table.records tbody tr').first();
  const id = (await firstRecord.locator('td.id code').textContent()) ?? '';
  await page.getByRole('searchbox').fill(id);
  // The search index may be a moment behind, and the page says so.
  await waitFor(async () => {
    await page.getByRole('button', { name: 'Search' }).click();
    return page.getByText(/^1 record with/).isVisible();
  });
  const download = page.waitForEvent('download');
  await page.getByRole('link', { name: 'Download these as CSV' }).click();
  expect((await download).suggestedFilename()).toBe('ravn-co-contacts.csv');
  await firstRecord.getByRole('link').click();
  await page.getByRole('heading', { level: 1 }).waitFor();
  await page.getByText('All of it, as the service sent it').click();
  await page.locator('pre').getByText(`"${id}"`).waitFor();
  await page.getByRole('link', { name: 'Raw JSON' }).click();
  expect(JSON.parse((await page.locator('pre').textContent()) ?? '')).toMatchObject({ id });
  expect(complaints).toEqual([]);
});

test('declines, and tries as somebody who is no administrator', async () => {
  const company = await addCompany('No, thanks');
  const { page } = await openPerson();
  await page.goto(`${config.publicUrl}/install`);
  await page.getByRole('group', { name: company.name }).getByRole('radio').first().check();
  await page.getByRole('button', { name: /deny/i }).click();
  await page.getByRole('heading', { name: 'The install was declined' }).waitFor();
  await page.getByRole('link', { name: 'Start again' }).click();
  await consent(page, company, false);
  await page.getByRole('heading', { name: 'An administrator is needed' }).waitFor();
  await page.waitForURL(`${config.publicUrl}/oauth/callback`);
  await page.reload();
  await page.getByRole('link', { name: 'Start again' }).click();
  await consent(page, company);
  await page.waitForURL('**/instances/*');
});

test('authorizes again, is told of the wrong company, and takes the right one', async () => {
  const wrong = await addCompany('Harbour & Crow');
  const { company, dashboard, page } = await installed('Little Lantern Books');
  await control.fault({
    match: { path: '/oauth/token' },
    fault: { status: 400, body: { error: 'invalid_grant' } },
    times: 1,
  });
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 401 },
    times: 1,
  });
  await page.getByRole('button', { name: 'Sync now', exact: true }).first().click();
  await page.getByText('Needs authorization').first().waitFor();

  await page.getByRole('link', { name: 'Authorize again' }).click();
  await consent(page, wrong);
  await page
    .getByText('You authorized Harbour & Crow. Little Lantern Books still needs its authorization.')
    .waitFor();
  await page.getByRole('link', { name: 'Authorize Little Lantern Books' }).click();
  await consent(page, company);
  await page.waitForURL(dashboard);
  await page.getByText('Up to date').first().waitFor();
});

test('signs in on a second device, and comes back to the address', async () => {
  const { company, dashboard } = await installed('Second device');
  const { page } = await openPerson();
  await page.goto(`${dashboard}/contacts`);
  await page.getByRole('heading', { name: 'Not found' }).waitFor();
  await page.getByRole('link', { name: 'Sign in with the service' }).click();
  await consent(page, company);
  await page.waitForURL(`${dashboard}/contacts`);
  await page.getByText('20 records').waitFor();
});

test('logs out everywhere else', async () => {
  const { company, dashboard, page } = await installed('Everywhere');
  const other = await openPerson();
  await install(other.page, company);
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByText('Log out everywhere else').first().click();
  await page.getByRole('button', { name: 'Log out everywhere else' }).click();
  await page.getByText('Every other browser is logged out of this company.').waitFor();
  // The open page of the other one tells by itself.
  await other.page.getByRole('heading', { name: 'You were signed out' }).waitFor();
  await other.page.getByRole('link', { name: 'Sign in with the service' }).click();
  await consent(other.page, company);
  await other.page.waitForURL(dashboard);
  await page.goto(dashboard);
  await page.getByRole('heading', { name: 'Overview' }).waitFor();
});

test('pauses one list, resumes it, sets its interval, and reads the history', async () => {
  const { dashboard, page } = await installed('Single lists');
  await page.getByRole('link', { name: 'Settings' }).click();
  const contacts = card(page, 'Contacts');
  await contacts.getByRole('button', { name: 'Pause' }).click();
  await contacts.getByText('Paused').waitFor();
  // The focus stays where it was: the same button goes on now.
  expect(await page.evaluate('document.activeElement.textContent')).toBe('Resume');
  await page.keyboard.press('Enter');
  await contacts.getByText('Complete').waitFor();

  const minutes = contacts.getByLabel('Minutes between two syncs');
  await minutes.fill('0');
  await minutes.press('Enter');
  await contacts.getByText('from 1 to 44,640 (31 days). Nothing was done.').waitFor();
  expect(await minutes.inputValue()).toBe('0');
  expect(await page.evaluate('document.activeElement.name')).toBe('minutes');
  await minutes.fill('15');
  await contacts.getByRole('button', { name: 'Set the minutes' }).click();
  await page.getByText('The interval is set.').waitFor();
  expect(await minutes.inputValue()).toBe('15');
  expect(new URL(page.url()).pathname).toBe(`${new URL(dashboard).pathname}/settings`);

  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('button', { name: 'Sync now' }).click();
  await waitFor(async () => isSynced(await statusOf(page, dashboard)));
  await page.getByRole('link', { name: 'History' }).click();
  await page
    .getByText(/^First copy/)
    .first()
    .waitFor();
  const rows = page.locator('tbody tr');
  expect(await rows.count()).toBe(2);
  expect(await rows.last().textContent()).toMatch(
    /Sync\s+Finished\s+Contacts: 20 new\s+Conversations: 20 new/,
  );
});

test('reads the chart of the history by the keyboard, and by touch', async () => {
  const { company, dashboard, page } = await installed('Charted', { contacts: 30 });
  await control.call('POST', `companies/${company.id}/records`, { resource: 'contacts', change: 3 });
  await page.getByRole('button', { name: 'Sync now' }).click();
  await waitFor(async () => (await runsOf(page, dashboard)).contacts.some(({ changed }) => changed === 3));
  await page.goto(`${dashboard}/runs`);
  const said = page.locator('#chart-contacts .chart-said');
  const today = page.locator('#chart-contacts .day').last();
  await today.focus();
  expect(await said.textContent()).toMatch(/3 changed · first copy of 30 records · \d syncs/);
  await page.keyboard.press('ArrowLeft');
  expect(await said.textContent()).toMatch(/: no changes$/);
  await page.locator('#chart-contacts').getByRole('button', { name: 'the next day' }).click();
  expect(await said.textContent()).toMatch(/3 changed/);
  await page.locator('#chart-contacts').getByRole('button', { name: 'the day before' }).click();
  expect(await said.textContent()).toMatch(/: no changes$/);
});

test('sees what could not be handed on, has it tried again, and replays the copy', async () => {
  const company = await addCompany('Dead letter');
  refused.set(company.id, '');
  const { page } = await openPerson();
  const dashboard = await install(page, company);
  await page.getByText('1 change could not be handed to Partner app.').first().waitFor();
  await page.getByRole('link', { name: 'For the developer' }).click();
  await page.getByText('The lead is not known.').first().waitFor();
  const id = refused.get(company.id);
  refused.clear();
  await page.getByRole('button', { name: 'Try all again' }).click();
  await page.getByRole('heading', { name: 'Dead letters' }).waitFor({ state: 'detached' });
  expect(handed).toContain(`${company.id} ${id}`);

  handed.length = 0;
  await page.getByText('Replay everything').first().click();
  await page.getByRole('button', { name: 'Replay everything' }).click();
  await page.getByText('The handler gets the records again.').waitFor();
  const own = () => new Set(handed.filter((line) => line.startsWith(company.id)));
  await waitFor(() => own().size === 40, 'the whole copy');
  expect((await statusOf(page, dashboard)).status).toBe('active');
});

test('confirms deletions that were held', async () => {
  const { company, page } = await installed('Emptied', { contacts: 60 });
  const body = { _pagination: { next: null }, _links: { self: '' }, _results: [] };
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body },
    times: 1,
  });
  await page.getByRole('button', { name: 'Sync now', exact: true }).first().click();
  await page.getByText('The last sync did not find 60 of 60 contacts.').waitFor();
  await page.getByRole('button', { name: 'Confirm deletions' }).click();
  await page.getByText('You confirmed the deletions').waitFor();
  expect(await card(page, 'Contacts').locator('strong').textContent()).toBe('0');
});

test('erases a record, which does not come back', async () => {
  const { dashboard, page } = await installed('Personal data');
  await page.goto(`${dashboard}/contacts`);
  const address = (await page.locator('table.records a').first().getAttribute('href')) ?? '';
  await page.goto(config.publicUrl + address);
  await page.getByText('Erase this record').first().click();
  await page.getByRole('button', { name: 'Erase this record' }).click();
  await page.getByText('The record is erased.').waitFor();
  await page.getByText('19 records').waitFor();
  await page.getByRole('link', { name: 'Overview' }).click();
  await page.getByRole('button', { name: 'Sync now', exact: true }).first().click();
  await waitFor(async () => isSynced(await statusOf(page, dashboard)));
  await page.goto(config.publicUrl + address);
  await page.getByRole('heading', { name: 'No such record' }).waitFor();
});

test('disconnects, and deletes the data by the company’s name', async () => {
  const { company, page, complaints } = await installed('To be deleted');
  await page.getByRole('link', { name: 'Settings' }).click();
  await page.getByText('Disconnect this company').click();
  const name = page.getByLabel(/To delete the data, type/);
  expect(await name.isVisible()).toBe(false);
  await page.getByLabel('Also delete the copied data').check();
  await name.fill('To be kept');
  await page.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByText('type the company’s name: To be deleted. Nothing was done.').waitFor();
  expect(await name.inputValue()).toBe('To be kept');
  await name.fill(company.name);
  await page.getByRole('button', { name: 'Disconnect' }).click();
  await page.getByText('To end the permission itself, remove the app at the service.').waitFor();
  await page.getByRole('link', { name: 'Install again' }).waitFor();
  await page.getByText('Its records are deleted.').waitFor();
  expect(complaints.filter((text) => !text.includes('400'))).toEqual([]);
});

test('works without JavaScript', async () => {
  const company = await addCompany('No script');
  const { page } = await openPerson({ javaScriptEnabled: false });
  const dashboard = await install(page, company);
  await waitFor(async () => {
    await page.getByRole('link', { name: 'Reload' }).click();
    return page.getByText('Up to date').first().isVisible();
  });
  await page.getByRole('button', { name: 'Pause', exact: true }).first().click();
  await page.getByText('Paused').first().waitFor();
  await page.getByRole('button', { name: 'Resume', exact: true }).first().click();
  await page.getByRole('button', { name: 'Pause', exact: true }).first().waitFor();
  for (const path of ['/contacts', '/runs', '/problems', '/settings']) {
    expect((await page.goto(dashboard + path))?.status(), path).toBe(200);
  }
  await page.getByLabel('Minutes between two syncs').first().fill('0');
  await page.getByRole('button', { name: 'Set the minutes: Contacts' }).click();
  await page.getByText('from 1 to 44,640 (31 days). Nothing was done.').waitFor();
  expect(await page.evaluate('document.activeElement.name')).toBe('minutes');
});

test('moves the sandbox’s clock to the refresh token’s last hours, and the token is renewed', async () => {
  const { dashboard, page, complaints } = await installed('Half a year');
  await page.goto(testApp.sandbox.origin);
  await page.getByRole('button', { name: /12 hours before/ }).click();
  await page.getByText('2027').first().waitFor();
  await page.goto(dashboard);
  await page.getByRole('button', { name: 'Sync now', exact: true }).first().click();
  const status = await waitFor(async () => {
    const read = await statusOf(page, dashboard);
    return isSynced(read) && read.token.rotations === 1 ? read : undefined;
  });
  expect(status.status).toBe('active');
  expect(complaints).toEqual([]);
});
