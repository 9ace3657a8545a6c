import { expect, it } from 'vitest';
import { openBrowser } from './browser.ts';

it('opens a page and runs its script', async () => {
  const browser = await openBrowser();
  const page = await browser.newPage();
  await page.goto('data:text/html,<title>a</title><button onclick="document.title=\'b\'">Go</button>');
  await page.click('button');
  expect(await page.title()).toBe('b');
});
