import { expect, test } from 'vitest';
import { openBrowser } from '../support/browser.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp } from '../support/test-app.ts';
import { redisUrlAt, startTestRedis } from '../support/test-redis.ts';
import { startWeb } from '../web/start-web.ts';

const proxy = await startTcpProxy((await startTestRedis()).port);
// So slow that no list waits for the limit.
const sandbox = { latencyMs: 250 };
const testApp = await startTestApp({ sandbox, workers: false, redisUrl: redisUrlAt(proxy.port) });
const { control, config } = testApp;
const browser = await openBrowser();

async function startWorker() {
  const worker = spawnEntry('src/worker.ts', testApp.env);
  await worker.waitForOutput(/the workers run/);
  return worker;
}

test('an open dashboard says that no worker runs, and that the app cannot use its queue, as long as it is so', async () => {
  // More than the test lasts.
  const company = await control.addCompany({
    name: 'In trouble',
    plan: 'enterprise',
    contacts: 30_000,
    conversations: 30_000,
  });
  const page = await browser.newPage();
  await page.goto(`${config.publicUrl}/install`);
  const administrator = company.teammates.find(({ is_admin }) => is_admin)?.name ?? '';
  await page.getByRole('group', { name: company.name }).getByRole('radio', { name: administrator }).check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL('**/instances/*');
  let loads = 0;
  page.on('load', () => loads++);
  const headline = page.locator('.headline');
  const contacts = page.getByRole('region', { name: 'Contacts', exact: true });
  const shows = (words: RegExp) => headline.filter({ hasText: words }).waitFor();

  // Installed while none runs.
  await shows(/^The app’s worker is not running/);
  const worker = await startWorker();
  await shows(/^Copying/);
  // Which list begins first is open.
  await contacts.getByText('Copying', { exact: true }).waitFor();

  await worker.stop('SIGKILL');
  await shows(/^The app’s worker is not running/);
  await contacts.getByText('Waiting', { exact: true }).waitFor();

  await proxy.refuse();
  await shows(/^The sync has stopped/);
  await page.getByText('The app cannot use its queue, so nothing new is copied.').waitFor();

  await proxy.pass();
  await shows(/^The app’s worker is not running/);
  expect(loads).toBe(0);
});

test('an open page says that it is not live while the app is away, and goes on by itself', async () => {
  const way = await startTcpProxy(0);
  const publicUrl = `http://127.0.0.1:${way.port}`;
  const web = await startWeb({ publicUrl });
  way.lead(Number(new URL(web.url).port));
  const page = await browser.newPage();
  const id = await web.installedOn(page, 'Own');
  const mark = page.locator('[data-live-mark]');
  await mark.filter({ hasText: /^Live$/ }).waitFor();

  await way.refuse();
  const banner = page.locator('#banner');
  await banner
    .filter({ hasText: /^Not live: the app cannot be reached\. This page shows what was so at / })
    .waitFor();
  await web.store.instances.setStatus(id, 'paused', { from: ['active'] });
  await way.pass();
  await page.getByRole('button', { name: 'Resume' }).waitFor();
  expect(await banner.textContent()).toBe('');
});
