import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import type { Browser, Page } from 'playwright-core';
import { afterEach, beforeAll, describe, expect, test } from 'vitest';
import { API } from '../../src/contract/api/api.ts';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { openBrowser } from '../support/browser.ts';
import { at, START_MS, startFrozen, type TestSandbox } from './support/test-sandbox.ts';

const HOUR_MS = 60 * 60_000;
const AXE = readFileSync(createRequire(import.meta.url).resolve('axe-core/axe.min.js'), 'utf8');

let browser: Browser;
const errors: string[] = [];

beforeAll(async () => {
  browser = await openBrowser();
});

afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  // The content security policy's refusals are among them.
  expect(errors.splice(0)).toEqual([]);
});

async function open(service: TestSandbox, options: object = {}): Promise<Page> {
  const page = await browser.newPage(options);
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  page.on('dialog', (dialog) => dialog.accept());
  await page.goto(service.sandbox.origin);
  return page;
}

async function start() {
  const service = await startFrozen();
  const company = await service.company({ name: 'Ada & Söhne' });
  const page = await open(service);
  const gauges = page.locator('article').filter({ hasText: 'Ada' }).getByRole('meter');
  return {
    ...{ service, company, page, gauges, token: at(company.api_tokens, 0).token },
    press: (name: string | RegExp) => page.getByRole('button', { name, exact: true }).click(),
    /** Waits until those who cannot see it are told so. */
    said: (text: string) => page.getByRole('status').filter({ hasText: text }).waitFor(),
    shown: (text: string) => page.getByText(text).waitFor(),
    /** Waits until a gauge of the company stands there. */
    stands: (name: string, words: string) =>
      gauges.and(page.locator(`[aria-label="${name}"][aria-valuetext="${words}"]`)).waitFor(),
    /** The row of a request, once it is there. */
    row: async (n: number) => (await page.locator(`#request-${n}`).innerText()).replace(/\s+/g, ' '),
  };
}

async function faults({ sandbox }: TestSandbox): Promise<unknown> {
  return (await fetch(`${sandbox.origin}/_sandbox/faults`)).json();
}

const KINDS: [kind: string, fields: Record<string, string>, fault: object][] = [
  ['status', { Status: '502', 'retry-after': '7' }, { status: 502, headers: { 'retry-after': '7' } }],
  ['before', {}, { drop: 'before' }],
  ['after', {}, { drop: 'after' }],
  ['delay', { Milliseconds: '20' }, { delay_ms: 20 }],
  ['drip', { 'Bytes at a time': '5', 'Every so many': '2' }, { drip: { bytes: 5, every_ms: 2 } }],
  ['truncate', { 'After so many bytes': '9' }, { truncate: 9 }],
  ['body', { 'Body, as it is sent': '<p>' }, { body: '<p>' }],
  ['headers', { Header: 'x-a', Value: '-1' }, { headers: { 'x-a': '-1' } }],
  ['headers', { Header: 'date', Value: '' }, { headers: { date: null } }],
  ['revoke', {}, { revoke: 'access_token' }],
  ['records', { Created: '2', Deleted: '4' }, { records: { resource: 'contacts', create: 2, delete: 4 } }],
];

describe('The control panel', () => {
  test('A fault is ordered, seen among the requests, and removed', async () => {
    const { service, company, page, token, press, said, shown, row } = await start();
    const routes = await page.getByLabel('Route').getByRole('option').allInnerTexts();
    for (const { method, path } of Object.values(API)) expect(routes).toContain(`${method} ${path}`);
    await page.getByLabel('Route').selectOption('GET /contacts');
    await page.locator('[name="match.company_id"]').selectOption('Ada & Söhne');
    await page.getByLabel('From the so-many-th').fill('2');
    await press('Order');
    await said('flt_1 is ordered.');
    const match = { method: 'GET', path: '/contacts', company_id: company.id, nth: 2 };
    expect(await faults(service)).toMatchObject([{ match, fault: { status: 503 }, times: 1 }]);
    expect(await service.statuses(3, '/contacts?limit=5', token)).toEqual([200, 503, 200]);
    expect(await row(1)).toBe(`10:30:15 GET /contacts ?limit=5 200 ${company.id} 49`);
    expect(await row(2)).toBe(`10:30:15 GET /contacts flt_1 ?limit=5 503 ${company.id} 48`);
    await expect.poll(() => page.locator('#journal tr').first().getAttribute('id')).toBe('request-3');
    const list = page.getByRole('list', { name: 'Ordered faults' });
    await list.getByText('GET /contacts · Ada & Söhne · used up: 1 request').waitFor();
    await press('Remove flt_1');
    await said('flt_1 is removed.');
    await shown('None is ordered.');
    // The button is gone: the focus goes on from its section.
    expect(await page.locator(':focus').getAttribute('aria-labelledby')).toBe('faults');
  });

  test('The form orders every kind of fault, and tells why one is refused', async () => {
    const { service, company, page, press, said, shown } = await start();
    await page.locator('[name="match.company_id"]').selectOption('Ada & Söhne');
    const { client_id } = await service.application({ name: 'Later app' });
    await page.locator('#application-list').getByText(client_id).waitFor();
    await page.locator('[name="match.client_id"]').selectOption('Later app');
    await page.getByLabel('For so many requests').fill('3');
    const kind = page.getByLabel('What goes wrong');
    for (const [place, [value, fields]] of KINDS.entries()) {
      await kind.selectOption(value);
      const enabled = page.locator('form :is(input, textarea):enabled');
      for (const [label, text] of Object.entries(fields))
        await enabled.and(page.getByLabel(label)).fill(text);
      await press('Order');
      await said(`flt_${place + 1} is ordered.`);
    }
    const match = { company_id: company.id, client_id };
    expect(await faults(service)).toMatchObject(KINDS.map(([, , fault]) => ({ match, fault, times: 3 })));
    expect(await kind.getByRole('option').count()).toBe(new Set(KINDS.map(([value]) => value)).size);
    await press('Remove all');
    await shown('None is ordered.');
    await kind.selectOption('headers');
    await page.getByLabel('Header', { exact: true }).fill('not a header');
    await press('Order');
    await page.getByRole('alert').filter({ hasText: 'must be HTTP fields' }).waitFor();
    // The browser tells of the 400 itself.
    expect(errors.splice(0)).toHaveLength(1);
  });

  test('A conversation of a company changes, comes or goes by a button', async () => {
    const { service, company, token, press, said, shown } = await start();
    const first = async () => {
      const { body } = await service.call('GET', '/conversations?limit=1', token);
      return (body as { _results: { id: string; custom_fields: object }[] })._results[0];
    };
    const before = await first();
    await press('Change a conversation of Ada & Söhne');
    await said('A conversation has changed.');
    const changed = await first();
    expect(changed?.id).not.toBe(before?.id);
    expect(changed?.custom_fields).toMatchObject({ revision: 1 });
    const { conversations = 0 } = company.counts;
    await press('Add a conversation of Ada & Söhne');
    await shown(`${company.counts.contacts} contacts, ${conversations + 1} conversations`);
    await press('Delete a conversation of Ada & Söhne');
    await shown(`${company.counts.contacts} contacts, ${conversations} conversations`);
  });

  test('A company is added by a form', async () => {
    const { service, page, press, said, shown } = await start();
    const form = page.getByRole('form', { name: 'Add a company' });
    await form.getByLabel('Name').fill('Möwe & Co');
    await form.getByLabel('Plan').selectOption('enterprise');
    await form.getByLabel('Contacts').fill('7');
    await form.getByLabel('Conversations').fill('3');
    await press('Add');
    await said('is added.');
    await shown('7 contacts, 3 conversations');
    const state = await fetch(`${service.sandbox.origin}/_sandbox/state`);
    const { companies } = (await state.json()) as { companies: { name: string; plan: string }[] };
    expect(companies).toContainEqual(expect.objectContaining({ name: 'Möwe & Co', plan: 'enterprise' }));
  });

  test('Gauges of limits and guards move with requests and time', async () => {
    const { service, company, page, token, press, stands } = await start();
    await stands('Own limit', '50 of 50');
    await service.statuses(55, '/me', token);
    await stands('Own limit', '0 of 50 · full in 1 min 0 s');
    await stands('Own burst', '20 of 25 · full in 10 min 0 s');
    expect(await page.locator('meter[value="20"][max="25"]').count()).toBe(1);
    const { access_token } = await service.install(company);
    for (const who of [access_token, access_token]) await service.api('/conversations/search/x', who);
    await stands('Tier search · search · partner', '46 of 48 · 1 min 0 s');
    await press('+1 minute');
    await stands('Own limit', '50 of 50');
    await stands('Own burst', '20 of 25 · full in 9 min 0 s');
    expect(await page.getByRole('meter', { name: /^Tier/ }).count(), 'over, too').toBe(0);
  });

  test('The clock is frozen, moved on, set and let run, and tokens end by it', async () => {
    const { service, company, page, press, said, shown } = await start();
    await shown('There is no refresh token yet');
    await service.install(company);
    await service.done('clock', { frozen: false });
    const token = page.getByRole('listitem').filter({ hasText: 'Partner app for Ada & Söhne access' });
    await token.getByText('ends in 59 min').waitFor();
    await press('Freeze');
    await said('the clock is frozen');
    const { now } = await service.state();
    await press('+1 hour');
    await said(new Date(now + HOUR_MS).toISOString().slice(11, 19));
    expect(await service.state()).toMatchObject({ now: now + HOUR_MS, frozen: true });
    await token.waitFor({ state: 'detached' });
    await page.getByLabel('Set to').fill('2027-03-14T10:30');
    await press('Set');
    await said('It is 10:30:00');
    await page.getByLabel('Move on by').fill('2.5');
    await page.getByLabel('Unit').selectOption('minutes');
    await press('Move on');
    await said('It is 10:32:30');
    await shown('2027-03-14 10:32:30');
    await press(/^To 12 hours before/);
    await shown('is in its last 12 hours');
    const late = (await service.state()).now - (addMonths(START_MS, 6) - 12 * HOUR_MS);
    expect(late, 'installed within a minute of the start').toBeLessThan(60_000);
    expect(await page.getByRole('button', { name: /^To 12 hours before/ }).isDisabled()).toBe(true);
    await press('Let it run');
    await said('the clock runs');
  });

  test('A snapshot is taken and restored, and names are text, never markup', async () => {
    const { service, page, press, said, row } = await start();
    await press('Take one');
    await said('snp_1 is taken.');
    const late = await service.company({ name: '<img src=x onerror=alert(1)>' });
    const heading = page.getByRole('heading', { name: '<img src=x onerror=alert(1)>' });
    await heading.waitFor();
    await service.api('/contacts?<i>=<u>1<%2Fu>', at(late.api_tokens, 0).token);
    expect(await row(1)).toContain('?<i>=<u>1</u> ignored: query <i>');
    expect(await page.locator('article img, #journal :is(b, i, u)').count()).toBe(0);
    await press('Restore snp_1');
    await said('Everything is as it was in snp_1.');
    await heading.waitFor({ state: 'detached' });
  });

  test('It shows addresses and no secret, and nothing else is served', async () => {
    const { service, page } = await start();
    const html = await page.content();
    const { origin, apiUrl, authUrl, application } = service.sandbox;
    for (const text of [apiUrl, authUrl, application.client_id]) expect(html).toContain(text);
    expect(html).not.toContain(application.client_secret);
    for (const path of ['/panel.eta', '/render.ts', '/..%2Fworld.ts', '/nowhere'])
      expect((await fetch(origin + path)).status, path).toBe(404);
  });

  test.each(['light', 'dark'] as const)('It fits a phone and axe finds nothing: %s', async (colorScheme) => {
    const { service, company, token } = await start();
    await service.install(company);
    await service.done('faults', { fault: { status: 500 }, times: 2 });
    await service.statuses(2, '/contacts?limit=5', token);
    await service.done('snapshot', {});
    const page = await open(service, { viewport: { width: 360, height: 740 }, colorScheme, bypassCSP: true });
    expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
    await page.evaluate(AXE);
    const found = (await page.evaluate('axe.run()')) as { violations: { id: string }[] };
    expect(found.violations.map(({ id }) => id)).toEqual([]);
  });
});
