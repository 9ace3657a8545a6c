import { mkdirSync } from 'node:fs';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { startParts } from '../../src/demo/start-parts.ts';
import { launchBrowser } from '../support/launch-browser.ts';
import { APP_INFO, RESOURCES } from '../support/usual-resources.ts';

// `npm run screenshots`: takes the README's pictures from the running app. What the picture shows is real: the
// company that is larger than a window, when it waits for the limit.

const DIR = join(import.meta.dirname, '../../docs/images');
const COMPANY = 'Meridian Outfitters';

const { appUrl, sandboxUrl, shutdown } = await startParts({ resources: RESOURCES, appInfo: APP_INFO });
const browser = await launchBrowser();
shutdown.add('browser', () => browser.close());
mkdirSync(DIR, { recursive: true });

const context = await browser.newContext({ viewport: { width: 1_200, height: 900 }, colorScheme: 'light' });
const desktop = await context.newPage();
await install(desktop);
await desktop.getByText('Next requests').waitFor();
await desktop.screenshot({ path: join(DIR, 'dashboard.png') });

await desktop.setViewportSize({ width: 1_280, height: 1_400 });
await desktop.goto(sandboxUrl);
await desktop.getByRole('meter').first().waitFor();
await desktop.screenshot({ path: join(DIR, 'sandbox.png') });
await shutdown.stop('the screenshots are taken');

async function install(page: Page): Promise<void> {
  await page.goto(`${appUrl}/install`);
  await page.getByRole('group', { name: COMPANY }).getByRole('radio').first().check();
  await page.getByRole('button', { name: 'Approve' }).click();
  await page.waitForURL('**/instances/*');
  await page.getByText(COMPANY).first().waitFor();
}
