import { expect, test } from 'vitest';
import { openBrowser } from '../support/browser.ts';
import { redisUrlAt, startRedisServer } from '../support/redis-server.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { startTcpProxy } from '../support/tcp-proxy.ts';
import { startTestApp } from '../support/test-app.ts';

const proxy = await startTcpProxy((await startRedisServer()).port);
const testApp = await startTestApp({ workers: false, redisUrl: redisUrlAt(proxy.port) });
const { control, config } = testApp;
const browser = await openBrowser();

async function startWorker() {
  const worker = spawnEntry('src/worker.ts', testApp.env);
  await worker.waitForOutput(/the workers run/);
  return worker;
}

test('an open dashboard says that no worker runs, and that the app cannot reach its store, as long as it is so', async () => {
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
  const mark = page.locator('[data-live-mark]');
  const headline = page.locator('.headline');
  const shows = (words: RegExp) => headline.filter({ hasText: words }).waitFor();

  // Installed while none runs.
  await shows(/^No worker of the app runs/);
  const worker = await startWorker();
  await shows(/^Copying|^This minute’s requests are/);

  await worker.stop('SIGKILL');
  await shows(/^No worker of the app runs/);
  expect(await page.locator('[data-text="contacts.state"]').textContent()).toBe('Waiting');

  await proxy.refuse();
  await shows(/^The app cannot reach its own store/);
  await mark.filter({ hasText: 'Not live' }).waitFor();
  expect(await page.locator('[data-text="contacts.state"]').textContent()).toBe('Not known');

  await proxy.pass();
  await shows(/^No worker of the app runs/);
  await mark.filter({ hasText: /^Live$/ }).waitFor();
  expect(loads).toBe(0);
});
