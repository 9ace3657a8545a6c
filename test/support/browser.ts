import type { Browser } from 'playwright-core';
import { afterAll } from 'vitest';
import { launchBrowser } from './launch-browser.ts';

const browsers: Browser[] = [];

afterAll(async () => {
  await Promise.all(browsers.splice(0).map((browser) => browser.close()));
});

/** Starts a real browser; it ends when the test file is through. */
export async function openBrowser(): Promise<Browser> {
  const browser = await launchBrowser();
  browsers.push(browser);
  return browser;
}
