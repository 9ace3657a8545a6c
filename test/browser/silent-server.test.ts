import { expect, test } from 'vitest';
import { SESSION_COOKIE } from '../../src/web/session.ts';
import { openBrowser } from '../support/browser.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { waitFor } from '../support/wait-for.ts';
import { install, startWeb } from '../web/start-web.ts';

const web = await startWeb({ live: { intervalMs: 20, keepAliveMs: 50 } });
const proxy = await startTcpProxy(Number(new URL(web.url).port));
const browser = await openBrowser();

/** Lets a page count what it hears of the server being there. */
const COUNT_SIGNS = `
  window.signs = 0;
  window.EventSource = class extends EventSource {
    constructor(address) {
      super(address);
      this.addEventListener('alive', () => window.signs++);
    }
  };`;

test('an open page that hears nothing for long says so, and connects anew; one that hears that all is as it was does not', async () => {
  const session = web.browser();
  await install(session);
  const context = await browser.newContext();
  const url = `http://127.0.0.1:${proxy.port}`;
  const value = session.cookies.get(new URL(web.url), SESSION_COOKIE) ?? '';
  await context.addCookies([{ name: SESSION_COOKIE, value, url }]);
  const page = await context.newPage();
  await page.clock.install();
  await page.addInitScript(COUNT_SIGNS);
  let connections = 0;
  page.on('request', (request) => request.url().endsWith('/live') && connections++);
  await page.goto(`${url}/instances/ins_1`);
  const mark = page.locator('[data-live-mark]');
  await mark.filter({ hasText: /^Live$/ }).waitFor();

  for (let half = 0; half < 4; half++) {
    await page.clock.runFor(30_000);
    const before = await page.evaluate<number>('signs');
    await waitFor(async () => (await page.evaluate<number>('signs')) > before);
  }
  expect([await mark.textContent(), connections]).toEqual(['Live', 1]);

  proxy.silence();
  await page.clock.runFor(41_000);
  await mark.filter({ hasText: 'Reconnecting …' }).waitFor();
  expect(connections).toBe(2);
  await proxy.pass();
  await mark.filter({ hasText: /^Live$/ }).waitFor();
  expect(connections).toBe(2);
  await context.close();
});
