import type { Page } from 'playwright-core';
import { expect, test } from 'vitest';
import { StoreError } from '../../src/store/database.ts';
import { openBrowser } from '../support/browser.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait-for.ts';
import { startWeb } from '../web/start-web.ts';

const proxy = await startTcpProxy(0);
const publicUrl = `http://127.0.0.1:${proxy.port}`;
const web = await startWeb({ publicUrl });
proxy.lead(Number(new URL(web.url).port));
const browser = await openBrowser();

let companies = 10;

/** A browser that has installed two companies, on the dashboard of the last. */
async function openDashboard(): Promise<{ page: Page; ids: string[]; id: string }> {
  const page = await (await browser.newContext()).newPage();
  const ids: string[] = [];
  companies += 2;
  for (const n of [1, 2]) ids.push(await web.installedOn(page, `Company ${companies + n}`));
  return { page, ids, id: ids[1] ?? '' };
}

const pause = (id: string) => web.store.instances.setStatus(id, 'paused', { from: ['active'] });

/** Where to click for a button; the click itself must not wait for the answer, as the library’s own would. */
async function findButton(page: Page, name: string): Promise<() => Promise<void>> {
  const box = await page.getByRole('button', { name, exact: true }).boundingBox();
  if (!box) throw new Error(`“${name}” is not shown`);
  return () => page.mouse.click(box.x + box.width / 2, box.y + box.height / 2);
}

const pressed = () => web.log.lines.filter(({ msg }) => msg === 'action').length;

test('a button that is pressed again while its answer is on its way sends its form once, and the browser keeps its companies', async () => {
  const { page, id, ids } = await openDashboard();
  await page.goto(`${publicUrl}/instances/${id}/settings`);
  await page.locator('summary', { hasText: 'Log out everywhere else' }).click();
  const press = await findButton(page, 'Log out everywhere else');
  let forms = 0;
  page.on('request', (request) => {
    if (request.method() === 'POST') forms++;
  });
  const before = pressed();
  proxy.holdAnswers();
  await press();
  await waitFor(() => pressed() > before);
  await press();
  await press();
  await proxy.pass();
  await page.getByText('Every other browser is logged out of this company.').waitFor();
  expect(forms).toBe(1);
  for (const one of ids) {
    expect((await page.goto(`${publicUrl}/instances/${one}`))?.status(), one).toBe(200);
  }
});

test('a form whose answer is lost says so, also while the page is brought up to date, and can be sent again', async () => {
  const { page } = await openDashboard();
  await proxy.refuse();
  await page.getByRole('button', { name: 'Pause' }).click();
  const lost = page.getByText('Look whether it was done, then try again.');
  await lost.waitFor();
  await proxy.pass();
  await page.getByText('Live', { exact: true }).waitFor();
  expect(await lost.isVisible()).toBe(true);
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('Nothing is copied at the moment.').waitFor();
  expect(await lost.count()).toBe(0);
});

test('an error that passes leaves the page as it is', async () => {
  const { page } = await openDashboard();
  const { control } = web.deps;
  control.pause = () => Promise.reject(new StoreError('The disk is full.'));
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByText('The app cannot use its database at the moment. Nothing is lost.').waitFor();
  await page.getByRole('link', { name: 'History' }).waitFor();
  Reflect.deleteProperty(control, 'pause');
  await page.getByRole('button', { name: 'Pause' }).click();
  await page.getByRole('button', { name: 'Resume' }).waitFor();
});

test('a mistake stays told while the rest of the page goes on, and the answer of a form outlives an older look', async () => {
  const { page, id } = await openDashboard();
  await page.goto(`${publicUrl}/instances/${id}/settings`);
  const minutes = page.getByLabel('Minutes between two syncs').first();
  await minutes.fill('0');
  await minutes.press('Enter');
  const told = page.getByText('from 1 to 44,640 (31 days). Nothing was done.');
  await told.waitFor();
  await pause(id);
  await page.getByRole('region', { name: 'Contacts', exact: true }).getByText('Paused').waitFor();
  expect([await told.isVisible(), await minutes.inputValue()]).toEqual([true, '0']);
});

test('a page that is brought up to date keeps the focus, what was typed, and each button its action', async () => {
  const { page, id } = await openDashboard();
  await page.goto(`${publicUrl}/instances/${id}/settings`);
  const actions = () =>
    page.evaluate(`[...document.querySelectorAll('#dashboard form')].map((form) =>
      form.querySelector('button').textContent.trim() + ' ' + form.getAttribute('action').split('/').slice(3).join('/'))`);
  await page.locator('summary', { hasText: 'Disconnect this company' }).click();
  await page.getByLabel('Also delete the copied data').check();
  await page.getByLabel(/To delete the data/).fill('River');
  await page.locator('summary', { hasText: 'Log out everywhere else' }).click();
  await page.getByRole('button', { name: 'Log out everywhere else' }).focus();
  expect(await actions()).toContain('Replay everything replay');

  await pause(id);
  await page.getByText('Replay everything').first().waitFor({ state: 'detached' });
  expect(await actions()).toEqual([
    ...['contacts', 'conversations'].flatMap((list) => [`Pause ${list}/pause`, `Set ${list}/interval`]),
    'Log out everywhere else logout-others',
    'Disconnect disconnect',
  ]);
  expect(await page.locator('#banner').textContent()).toBe('');
  expect(await page.evaluate('document.activeElement.id')).toBe('logout-others-button');
  expect(await page.getByLabel('Also delete the copied data').isChecked()).toBe(true);
  expect(await page.getByLabel(/To delete the data/).inputValue()).toBe('River');
});
