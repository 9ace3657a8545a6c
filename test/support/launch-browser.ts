import { accessSync, constants } from 'node:fs';
import { mkdir, rm, stat } from 'node:fs/promises';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { type Browser, chromium } from 'playwright-core';
import { PATIENCE_MS } from './wait-for.ts';

const NAMES = ['chromium', 'chromium-browser', 'google-chrome', 'google-chrome-stable'];
const LOCK_POLL_MS = 50;
const LOCK_STALE_MS = 60_000;
const FLAGS = [
  // Its sandbox does not work for root, nor in most containers; the tests open nothing but our own pages.
  '--no-sandbox',
  '--disable-dev-shm-usage',
  '--disable-gpu',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
];

/** Starts Chromium, that of the PATH or else the one that npm brought; the caller closes it. */
export async function launchBrowser(): Promise<Browser> {
  const executablePath = onPath() ?? (await unpacked());
  const browser = await chromium.launch({ executablePath, args: FLAGS, timeout: PATIENCE_MS });
  return browser.on('context', (context) => context.setDefaultTimeout(PATIENCE_MS));
}

function onPath(): string | undefined {
  const dirs = (process.env.PATH ?? '').split(delimiter).filter((dir) => dir !== '');
  return NAMES.flatMap((name) => dirs.map((dir) => join(dir, name))).find((path) => {
    try {
      accessSync(path, constants.X_OK);
      return true;
    } catch {
      return false;
    }
  });
}

async function unpacked(): Promise<string> {
  const { default: packed } = await import('@sparticuz/chromium');
  // It takes a file that another test file has not finished unpacking for the whole.
  const lock = join(tmpdir(), 'partner-app-test-chromium-unpacking');
  while (!(await isMade(lock))) await sleep(LOCK_POLL_MS);
  try {
    return await packed.executablePath();
  } finally {
    await rm(lock, { recursive: true, force: true });
  }
}

/** Makes a directory that is a lock. One that a killed test has left is removed, for the next try. */
async function isMade(lock: string): Promise<boolean> {
  try {
    await mkdir(lock);
    return true;
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    const { mtimeMs } = await stat(lock).catch(() => ({ mtimeMs: Date.now() }));
    if (Date.now() - mtimeMs > LOCK_STALE_MS) await rm(lock, { recursive: true, force: true });
    return false;
  }
}
