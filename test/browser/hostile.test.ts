import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { afterAll, expect, test } from 'vitest';
import { WEB_LIMITS } from '../../src/web/web-limits.ts';
import { openBrowser } from '../support/browser.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const PASSWORD = 'the operator’s own words';

/** Each of them says so in a place of its own if it runs. */
const run = (n: number) => `(window.ran=window.ran||[]).push(${n})`;
const SCRIPT = `<script>${run(1)}</script><img src=x onerror="${run(2)}"><svg onload="${run(3)}"></svg>`;
const ATTRIBUTE = `" onmouseover="${run(4)}" autofocus onfocus="${run(5)}" x="`;
const HOSTILE = `${SCRIPT}${ATTRIBUTE}</title></textarea></script><a href="javascript:${run(6)}">click</a>`;

const testApp = await startTestApp({
  env: { OPERATOR_PASSWORD: PASSWORD },
  // What the integrator's own function says is shown, too.
  ownLogic: async ({ resource }) => {
    if (resource === 'conversations') throw new Error(`It failed: ${HOSTILE}`);
  },
});
const { control, config } = testApp;
const browser = await openBrowser();

const elsewhere = createServer((request, response) => {
  response.setHeader('content-type', 'text/html');
  response.end(elsewherePages.get(request.url ?? '') ?? '');
}).listen(0, '127.0.0.1');
await once(elsewhere, 'listening');
/** Another site: same machine, another name. */
const elsewhereUrl = `http://localhost:${(elsewhere.address() as AddressInfo).port}`;
const elsewherePages = new Map<string, string>();
afterAll(() => {
  elsewhere.closeAllConnections();
  elsewhere.close();
});

async function openPage() {
  const context = await browser.newContext({ httpCredentials: { username: 'operator', password: PASSWORD } });
  const page = await context.newPage();
  const complaints: string[] = [];
  page.on('console', (message) => {
    if (message.type() === 'error' || message.type() === 'warning') complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(error.message));
  page.on('dialog', () => complaints.push('a dialog opened'));
  return { page, complaints };
}

/** Installs a company whose name and every field are hostile, and waits for what is copied; answers its dashboard. */
async function installHostile(page: Page): Promise<string> {
  const company = await control.addCompany({
    name: 'Hostile',
    plan: 'starter',
    contacts: 1,
    conversations: 1,
  });
  const record = {
    id: `crd_${HOSTILE}`,
    name: HOSTILE,
    [HOSTILE]: HOSTILE,
    deep: [{ [ATTRIBUTE]: [HOSTILE] }],
    _links: { self: `javascript:${run(7)}` },
  };
  const body = { _pagination: { next: null }, _links: { self: HOSTILE }, _results: [record] };
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body },
    times: 1,
  });
  await control.fault({
    match: { path: '/me', company_id: company.id },
    fault: { status: 200, body: { _links: { self: HOSTILE }, id: company.id, name: HOSTILE } },
    times: 1,
  });
  const teammate = company.teammates.find(({ is_admin }) => is_admin)?.id ?? '';
  await page.goto(`${config.publicUrl}/install`);
  await page.locator(`input[value="${teammate}"]`).check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL('**/instances/*');
  await waitFor(async () => (await page.locator('[data-text="contacts.stored"]').textContent()) === '1');
  await page.getByText('It failed:').first().waitFor();
  return page.url();
}

const ran = (page: Page) => page.evaluate('window.ran || []');

/** Touches all that a person could: what waits for a pointer or the focus runs then. */
async function touch(page: Page): Promise<void> {
  await page.evaluate(`for (const element of document.querySelectorAll('body *')) {
    element.dispatchEvent(new MouseEvent('mouseover', { bubbles: true }));
    element.focus?.();
  }`);
}

test('every page shows hostile words as words, and no page of ours breaks its own policy', async () => {
  const { page, complaints } = await openPage();
  const dashboard = await installHostile(page);
  const list = `${dashboard}/contacts`;
  await page.goto(list);
  const record = (await page.locator('table.records a').first().getAttribute('href')) ?? '';
  const pages = [
    config.publicUrl,
    dashboard,
    list,
    `${list}?q=${encodeURIComponent(HOSTILE)}`,
    new URL(record, list).href,
    `${dashboard}/set-aside`,
    `${dashboard}/conversations`,
    `${config.publicUrl}/ops`,
  ];
  for (const address of pages) {
    await page.goto(address);
    await touch(page);
    if (!address.endsWith('/conversations')) {
      expect(await page.locator('body').textContent(), address).toContain('<script>(window.ran');
    }
    expect(await page.locator('script:not([src="/assets/live.js"])').count(), address).toBe(0);
    expect(await page.locator('main :is(svg[onload], [onerror], [onmouseover], [onfocus])').count()).toBe(0);
    expect(await page.locator('a[href^="javascript:"]').count()).toBe(0);
    expect(await ran(page), address).toEqual([]);
  }
  expect(complaints.filter((text) => !text.includes('401'))).toEqual([]);
});

test('the service’s error is words, too', async () => {
  const { page, complaints } = await openPage();
  await page.goto(`${config.publicUrl}/install`);
  const state = new URL(page.url()).searchParams.get('state');
  const query = new URLSearchParams({
    state: state ?? '',
    error: HOSTILE.slice(0, 200),
    error_description: HOSTILE,
  });
  await page.goto(`${config.publicUrl}/oauth/callback?${query}`);
  await touch(page);
  expect(await page.locator('.lead').textContent()).toContain('<script>(window.ran');
  expect(await ran(page)).toEqual([]);
  expect(complaints.filter((text) => !/400/.test(text))).toEqual([]);

  const long = new URLSearchParams({ error: 'access_denied', error_description: 'W'.repeat(200) });
  await page.goto(`${config.publicUrl}/install`);
  long.set('state', new URL(page.url()).searchParams.get('state') ?? '');
  await page.goto(`${config.publicUrl}/oauth/callback?${long}`);
  expect(await page.locator('.lead').textContent()).toContain('WWW');
  expect(await page.evaluate('document.documentElement.scrollWidth <= innerWidth')).toBe(true);
});

test('a script that gets into a page all the same does not run: the policy refuses it', async () => {
  const { page, complaints } = await openPage();
  await page.route('**/*', async (route) => {
    if (route.request().resourceType() !== 'document') return route.continue();
    const response = await route.fetch();
    const html = (await response.text()).replace(
      '</body>',
      `${SCRIPT}<script src="${elsewhereUrl}/evil.js"></script><link rel="stylesheet" href="${elsewhereUrl}/evil.css">
       <form id="evil" method="post" action="${elsewhereUrl}/taken"><input name="words" value="secret"></form>
       <base href="${elsewhereUrl}/"></body>`,
    );
    await route.fulfill({ response, body: html });
  });
  await page.goto(config.publicUrl);
  await page.locator('#evil').waitFor({ state: 'attached' });
  expect(await page.title()).toContain('Partner app');
  expect(await ran(page)).toEqual([]);
  const refused = (what: string) =>
    complaints.some((text) => text.includes('Content Security Policy') && text.includes(what));
  for (const what of ['inline script', 'inline event handler', 'evil.js', 'evil.css', 'base-uri']) {
    await waitFor(() => refused(what), { what: `the policy to refuse ${what}` });
  }
  await page.evaluate('document.querySelector("#evil").submit()');
  await waitFor(() => refused('form-action'));
  expect(new URL(page.url()).origin).toBe(config.publicUrl);
});

test('another site can neither frame a page nor send a form in a person’s name', async () => {
  const { page } = await openPage();
  const dashboard = await installHostile(page);
  const { pathname } = new URL(dashboard);
  // To a browser "localhost" and "127.0.0.1" are two sites.
  elsewherePages.set('/frame', `<iframe src="${dashboard}"></iframe>`);
  await page.goto(`${elsewhereUrl}/frame`);
  await page.locator('iframe').waitFor();
  await waitFor(() => page.frames().length === 2 && page.frames()[1]?.url() !== dashboard);
  expect(page.frames()[1]?.url()).toMatch(/^chrome-error:/);

  elsewherePages.set(
    '/form',
    `<form method="post" action="${dashboard}/disconnect"><input name="delete_data" value="yes"></form>`,
  );
  await page.goto(`${elsewhereUrl}/form`);
  const answered = page.waitForResponse(`${dashboard}/disconnect`);
  await page.evaluate('document.querySelector("form").submit()');
  expect((await answered).status()).toBe(403);
  await page.getByText('Another site sent this').waitFor();
  await page.goto(dashboard);
  const status = (await page.evaluate(`fetch("${pathname}/status").then((answer) => answer.json())`)) as {
    status: string;
  };
  expect(status.status).toBe('active');
});

test('another site cannot use up the tries that a person has for an install', async () => {
  const { page } = await openPage();
  const images = Array.from(
    { length: WEB_LIMITS.installs + 5 },
    (_, n) => `<img src="${config.publicUrl}/install?n=${n}">`,
  );
  elsewherePages.set('/images', images.join(''));
  let asked = 0;
  page.on('requestfailed', () => asked++);
  // It is loaded when all of its images are, or are not to be had.
  await page.goto(`${elsewhereUrl}/images`);
  expect(asked).toBe(images.length);
  await page.goto(`${config.publicUrl}/install`);
  await page.getByRole('button', { name: 'Approve' }).waitFor();
});

test('the session cookie is out of a script’s reach, and a person can log out', async () => {
  const { page } = await openPage();
  await installHostile(page);
  const [cookie] = await page.context().cookies();
  expect(cookie).toMatchObject({ httpOnly: true, sameSite: 'Lax', secure: false, path: '/' });
  expect(await page.evaluate('document.cookie')).toBe('');
  const dashboard = page.url();
  await page.goto(config.publicUrl);
  await page.getByRole('button', { name: 'Log out' }).click();
  await page.waitForURL(`${config.publicUrl}/`);
  expect(await page.getByRole('button', { name: 'Log out' }).count()).toBe(0);
  expect(await page.context().cookies()).toEqual([]);
  expect((await page.goto(dashboard))?.status()).toBe(404);
});
