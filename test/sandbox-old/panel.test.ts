import type { Browser, Page } from 'playwright-core';
import { afterEach, beforeAll, expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { at, START_MS, startFrozen, type TestSandbox } from '../sandbox/support/test-sandbox.ts';
import { openBrowser } from '../support/browser.ts';

const HOUR_MS = 60 * 60_000;

let browser: Browser;
const errors: string[] = [];

beforeAll(async () => {
  browser = await openBrowser();
});

afterEach(async () => {
  for (const context of browser.contexts()) await context.close();
  // Also what the content security policy refuses is told here.
  expect(errors.splice(0)).toEqual([]);
});

async function open(service: TestSandbox, options: object = {}): Promise<Page> {
  const page = await browser.newPage(options);
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(service.sandbox.origin);
  await page.getByRole('meter').first().waitFor();
  return page;
}

async function start(spec: object = {}) {
  const service = await startFrozen();
  const company = await service.company({ name: 'Ada & Söhne', ...spec });
  const page = await open(service);
  return { service, company, page, token: at(company.api_tokens, 0).token };
}

/** Waits until the panel says so to those who cannot see it either. */
function said(page: Page, text: string | RegExp): Promise<void> {
  return page.getByRole('status').filter({ hasText: text }).waitFor();
}

/** The row of a request in the journal, once it is there. */
async function row(page: Page, n: number): Promise<string> {
  const found = page.locator(`#request-${n}`);
  await found.waitFor();
  return (await found.innerText()).replace(/\s+/g, ' ');
}

const gauge = (page: Page, company: string, name: string) =>
  page.locator('article').filter({ hasText: company }).getByRole('meter', { name, exact: true });

/** Waits until a gauge stands there. */
function stands(page: Page, company: string, name: string, words: string): Promise<void> {
  return gauge(page, company, name)
    .and(page.locator(`[aria-valuetext="${words}"]`))
    .waitFor();
}

test('a fault is ordered with the form, and seen to happen among the requests', async () => {
  const { service, company, page, token } = await start();
  await page.getByLabel('Route').selectOption('GET /contacts');
  await page.locator('select[name="company_id"]').selectOption({ label: 'Ada & Söhne' });
  await page.getByLabel('From the so-many-th').fill('2');
  await page.getByLabel('Status').fill('502');
  await page.getByLabel('retry-after').fill('7');
  await page.getByRole('button', { name: 'Order' }).click();
  await said(page, 'flt_1 is ordered.');
  const faults = await (await fetch(`${service.sandbox.origin}/_sandbox/faults`)).json();
  expect(faults).toMatchObject([
    {
      match: { method: 'GET', path: '/contacts', company_id: company.id, nth: 2 },
      fault: { status: 502, headers: { 'retry-after': '7' } },
      times: 1,
    },
  ]);
  expect(await service.statuses(3, '/contacts?limit=5', token)).toEqual([200, 502, 200]);
  expect(await row(page, 1)).toBe(`10:30:15 GET /contacts ?limit=5 200 ${company.id} 49`);
  expect(await row(page, 2)).toBe(`10:30:15 GET /contacts flt_1 ?limit=5 502 ${company.id} 48`);
  const first = page.locator('#journal-rows tr').first();
  // The third row may come a moment later.
  await expect.poll(() => first.getAttribute('id')).toBe('request-3');
  const ordered = page.getByRole('list', { name: 'Ordered faults' }).getByRole('listitem');
  await ordered.filter({ hasText: 'used up' }).waitFor();
  await page.getByRole('button', { name: 'Remove flt_1' }).click();
  await said(page, 'flt_1 is removed.');
  await page.getByText('None is ordered.').waitFor();
});

const KINDS: [kind: string, fields: Record<string, string>, fault: object][] = [
  ['before', {}, { drop: 'before' }],
  ['after', {}, { drop: 'after' }],
  ['delay', { Milliseconds: '20' }, { delay_ms: 20 }],
  [
    'drip',
    { 'Bytes at a time': '5', 'Every so many milliseconds': '2' },
    { drip: { bytes: 5, every_ms: 2 } },
  ],
  ['truncate', { 'After so many bytes': '9' }, { truncate: 9 }],
  ['body', { 'Body, as it is sent': '<p>' }, { body: '<p>' }],
  ['headers', { Header: 'x-ratelimit-limit', Value: '-1' }, { headers: { 'x-ratelimit-limit': '-1' } }],
  ['headers', { Header: 'date', Value: '' }, { headers: { date: null } }],
  ['revoke', {}, { revoke: 'access_token' }],
  [
    'records',
    { Created: '2', Deleted: '4' },
    { records: { resource: 'contacts', create: 2, delete: 4, change: 0, reorder: false } },
  ],
];

test('the form orders every kind of fault, and offers all of them', async () => {
  const { service, page } = await start();
  await page.getByLabel('For so many requests').fill('3');
  for (const [place, [kind, fields]] of KINDS.entries()) {
    await page.getByLabel('What goes wrong').selectOption(kind);
    for (const [label, value] of Object.entries(fields)) {
      const enabled = page.locator('#order-fault :is(input, textarea):enabled');
      await enabled.and(page.getByLabel(label)).fill(value);
    }
    await page.getByRole('button', { name: 'Order' }).click();
    await said(page, `flt_${place + 1} is ordered.`);
  }
  const faults = await (await fetch(`${service.sandbox.origin}/_sandbox/faults`)).json();
  expect(faults).toMatchObject(KINDS.map(([, , fault]) => ({ match: {}, fault, times: 3 })));
  const offered = await page.getByLabel('What goes wrong').locator('option').all();
  const values = await Promise.all(offered.map((option) => option.getAttribute('value')));
  expect(values.toSorted()).toEqual([...new Set(['status', ...KINDS.map(([kind]) => kind)])].toSorted());
});

test('a gauge moves with the requests, and is full again when the window is over', async () => {
  const { service, page, token } = await start();
  await stands(page, 'Ada', 'Own limit', '50 of 50');
  await service.statuses(13, '/me', token);
  await stands(page, 'Ada', 'Own limit', '37 of 50 · full in 1 min 0 s');
  const bar = gauge(page, 'Ada', 'Own limit');
  expect(await bar.getAttribute('aria-valuenow')).toBe('37');
  const share: number = await bar.evaluate((element) => {
    const inner = element.firstElementChild;
    return (inner?.getBoundingClientRect().width ?? 0) / element.getBoundingClientRect().width;
  });
  expect(Math.round(share * 100)).toBe(74);
  await service.statuses(42, '/me', token);
  await stands(page, 'Ada', 'Own burst', '20 of 25 · full in 10 min 0 s');
  await page.getByRole('button', { name: '+1 minute' }).click();
  await stands(page, 'Ada', 'Own limit', '50 of 50');
  await stands(page, 'Ada', 'Own burst', '20 of 25 · full in 9 min 0 s');
});

test('an open bucket of a guard has a gauge of its own, with its tier', async () => {
  const { service, company, page, token } = await start();
  const { id } = at(company.teammates, 0);
  await service.call('PATCH', `/teammates/${id}`, token, {});
  await stands(page, 'Ada', `Tier 2 · PATCH /teammates/:teammate_id · ${id}`, '4 of 5 · 1.0 s');
  await service.advance(1_000);
  await gauge(page, 'Ada', `Tier 2 · PATCH /teammates/:teammate_id · ${id}`).waitFor({ state: 'detached' });
});

test('a guard counts apart for partners: two buckets of one name, two gauges, and none is left over', async () => {
  const { service, company, page, token } = await start();
  const { access_token } = await service.install(company);
  const search = (who: string) => service.api('/conversations/search/hello', who);
  await search(token);
  await stands(page, 'Ada', 'Tier search · search', '19 of 20 · 1 min 0 s');
  await search(access_token);
  await search(access_token);
  await stands(page, 'Ada', 'Tier search · search · partner', '46 of 48 · 1 min 0 s');
  await stands(page, 'Ada', 'Tier search · search', '19 of 20 · 1 min 0 s');
  await service.advance(60_000);
  await stands(page, 'Ada', 'Partner limit', '120 of 120');
  expect(await page.locator('.guards .gauge').count()).toBe(0);
});

test('an application that is registered later is there, and can be chosen for a fault', async () => {
  const { service, page } = await start();
  const { client_id } = await service.application({ name: 'Later app' });
  await page.locator('#application-list li').filter({ hasText: client_id }).waitFor();
  await page.locator('select[name="client_id"]').selectOption({ label: 'Later app' });
  await page.getByRole('button', { name: 'Order' }).click();
  await said(page, 'flt_1 is ordered.');
  const faults = await (await fetch(`${service.sandbox.origin}/_sandbox/faults`)).json();
  expect(faults).toMatchObject([{ match: { client_id } }]);
});

test('the clock is frozen, moved on, set, and let run', async () => {
  const { service, company, page } = await start();
  await service.install(company);
  await service.done('clock', { frozen: false });
  await page.getByRole('button', { name: 'Freeze' }).click();
  await said(page, 'the clock is frozen');
  const { now } = await service.state();
  await page.getByRole('button', { name: '+1 hour' }).click();
  await said(page, new Date(now + HOUR_MS).toISOString().slice(11, 19));
  expect(await service.state()).toMatchObject({ now: now + HOUR_MS, frozen: true });
  await page.getByLabel('Set to').fill('2027-03-14T10:30');
  await page.getByRole('button', { name: 'Set', exact: true }).click();
  await said(page, 'It is 10:30:00');
  await page.getByLabel('Move on by').fill('2.5');
  await page.getByLabel('Unit').selectOption('minutes');
  await page.getByRole('button', { name: 'Move on' }).click();
  await said(page, 'It is 10:32:30');
  await page.locator('#now').filter({ hasText: '2027-03-14 10:32:30' }).waitFor();
  await page.getByRole('button', { name: /To 12 hours before/ }).click();
  await page.getByText('is in its last 12 hours').waitFor();
  const { now: near } = await service.state();
  expect(
    near - (addMonths(START_MS, 6) - 12 * HOUR_MS),
    'installed within a minute of the start',
  ).toBeLessThan(60_000);
  expect(await page.getByRole('button', { name: /To 12 hours before/ }).isDisabled()).toBe(true);
  await page.getByRole('button', { name: 'Let it run' }).click();
  await said(page, 'the clock runs');
  expect((await service.state()).frozen).toBe(false);
});

test('tokens show whose they are and how long they live', async () => {
  const { service, company, page } = await start();
  await page.getByText('None is valid.').waitFor();
  await service.install(company);
  const token = page.locator('#token-list li').filter({ hasText: 'access' });
  await token.filter({ hasText: 'Partner app for Ada & Söhne' }).waitFor();
  await service.advance(45 * 60_000);
  await token.filter({ hasText: 'ends in 15 min 0 s' }).waitFor();
  expect(await token.getByRole('meter').getAttribute('class')).toContain('low');
  await service.advance(15 * 60_000);
  await token.waitFor({ state: 'detached' });
  expect(await page.locator('#token-list li').count(), 'the refresh token').toBe(1);
});

test('a snapshot is taken, and restored', async () => {
  const { service, company, page, token } = await start();
  const tag = `/tags/${at(company.tags, 0)}`;
  await page.getByRole('button', { name: 'Take one' }).click();
  await said(page, 'snp_1 is taken.');
  await service.call('PATCH', tag, token, { name: 'changed' });
  await page.getByRole('button', { name: 'Restore snp_1' }).click();
  await said(page, 'Everything is as it was in snp_1.');
  const { body } = await service.call('GET', tag, token);
  expect(body.name).not.toBe('changed');
  await row(page, 2);
});

test('pausing holds the requests back, and going on shows them', async () => {
  const { service, page, token } = await start();
  await service.api('/me', token);
  await row(page, 1);
  await page.getByRole('button', { name: 'Pause' }).click();
  await service.statuses(2, '/contacts', token);
  await page.getByText('Paused; 2 newer requests.').waitFor();
  expect(await page.locator('#journal-rows tr').count()).toBe(1);
  await page.getByRole('button', { name: 'Pause', pressed: true }).click();
  await row(page, 3);
});

test('names and requests are shown as text, also of companies that come later', async () => {
  const { service, page } = await start();
  const late = await service.company({ name: '<img src=x onerror=alert(1)>' });
  await page.getByRole('heading', { name: '<img src=x onerror=alert(1)>' }).waitFor();
  await service.api('/contacts/<b>x<%2Fb>?<i>=<u>1<%2Fu>', at(late.api_tokens, 0).token);
  expect(await row(page, 1)).toContain('<i>=<u>1</u>');
  expect(await page.locator('article img, #journal-rows :is(b, i, u)').count()).toBe(0);
});

test('requests after a reset are all shown, and none from before, also when there are as many', async () => {
  const { service, page } = await start();
  const ask = async (path: string) =>
    service.statuses(3, path, at(at((await service.state()).companies, 0).api_tokens, 0).token);
  await ask('/contacts');
  await row(page, 3);
  await service.done('reset', {});
  await ask('/me');
  await page.locator('#request-1').filter({ hasText: '/me' }).waitFor();
  expect(await page.locator('#journal-rows').innerText()).not.toContain('/contacts');
});

test('a reset empties it, and a failure is told', async () => {
  const { service, company, page, token } = await start();
  await service.install(company);
  await service.api('/me', token);
  await row(page, 3);
  page.on('dialog', (dialog) => dialog.accept());
  await page.getByRole('button', { name: 'Reset everything' }).click();
  await page.locator('#request-3').waitFor({ state: 'detached' });
  await page.getByText('None is valid.').waitFor();
  expect((await service.state()).tokens).toEqual([]);
  await page.getByLabel('What goes wrong').selectOption('headers');
  await page.getByLabel('Header', { exact: true }).fill('not a header');
  await page.getByRole('button', { name: 'Order' }).click();
  await page.getByRole('alert').filter({ hasText: 'must be HTTP fields' }).waitFor();
  // The browser tells of the 400 itself.
  expect(errors.splice(0)).toHaveLength(1);
});

test('focus stays where it is while the panel looks again', async () => {
  const { service, page, token } = await start();
  await page.getByRole('button', { name: 'Take one' }).click();
  const restore = page.getByRole('button', { name: 'Restore snp_1' });
  await restore.focus();
  await service.api('/me', token);
  await row(page, 1);
  expect(await restore.evaluate((element) => element === element.ownerDocument.activeElement)).toBe(true);
});

test.each(['light', 'dark'] as const)('it fits a phone, %s', async (colorScheme) => {
  const { service, page: wide } = await start();
  await wide.close();
  const page = await open(service, { viewport: { width: 360, height: 740 }, colorScheme });
  expect(await page.evaluate('document.documentElement.scrollWidth')).toBe(360);
  const small = await page
    .getByRole('button')
    .evaluateAll((buttons) => buttons.filter((button) => button.getBoundingClientRect().height < 24).length);
  expect(small, 'buttons too small for a finger').toBe(0);
});
