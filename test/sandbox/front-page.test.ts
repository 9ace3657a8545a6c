import { expect, test } from 'vitest';
import { addMonths } from '../../src/contract/lifetimes.ts';
import { openBrowser } from '../support/browser.ts';
import { at, START_MS, startFrozen, startSandbox } from './test-sandbox.ts';

const HOUR_MS = 60 * 60_000;

test('says what it is, where it is and who is in it', async () => {
  const service = await startSandbox();
  const response = await fetch(service.sandbox.origin);
  const html = await response.text();
  expect([response.status, response.headers.get('content-type')]).toEqual([200, 'text/html; charset=utf-8']);
  const { companies } = await service.state();
  const { apiUrl, authUrl, application } = service.sandbox;
  for (const text of [apiUrl, authUrl, application.client_id]) expect(html).toContain(text);
  for (const { id, teammates } of companies) {
    expect(html).toContain(id);
    for (const { name } of teammates) expect(html).toContain(name);
  }
  expect(html).not.toContain(application.client_secret);
  expect(html).toContain('There is no refresh token yet');
});

test.each([
  ['/sandbox.css', 'text/css'],
  ['/front.js', 'text/javascript'],
])('%s is served', async (path, type) => {
  const service = await startSandbox();
  const response = await fetch(`${service.sandbox.origin}${path}`);
  expect(response.status).toBe(200);
  expect(response.headers.get('content-type')).toContain(type);
});

test('names are escaped', async () => {
  const service = await startSandbox();
  await service.company({ name: '<script>alert(1)</script>' });
  const html = await (await fetch(service.sandbox.origin)).text();
  expect(html).toContain('&lt;script&gt;alert(1)');
  expect(html).not.toContain('<script>alert');
});

test('its buttons move the clock, in a browser, within the content security policy', async () => {
  const service = await startFrozen();
  await service.install(at((await service.state()).companies, 0));
  const page = await (await openBrowser()).newPage();
  const errors: string[] = [];
  page.on('pageerror', (error) => errors.push(error.message));
  page.on('console', (message) => message.type() === 'error' && errors.push(message.text()));
  await page.goto(service.sandbox.origin);
  const press = async (name: string | RegExp) => {
    const reloaded = page.waitForEvent('load');
    await page.getByRole('button', { name }).click();
    await reloaded;
    return (await service.state()).now;
  };
  expect(await press('+1 hour')).toBe(START_MS + HOUR_MS);
  expect(await press('+1 day')).toBe(START_MS + 25 * HOUR_MS);
  expect(await press(/To 12 hours before/)).toBe(addMonths(START_MS, 6) - 12 * HOUR_MS);
  expect(await page.getByRole('button', { name: /To 12 hours before/ }).isDisabled()).toBe(true);
  page.on('dialog', (dialog) => dialog.accept());
  await press('Reset everything');
  expect((await service.state()).tokens).toEqual([]);
  expect(errors).toEqual([]);
});
