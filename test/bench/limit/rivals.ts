import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** A library that only this bench uses. A fork does not install it with its own. */
const RIVAL = 'bottleneck';
const VERSION = '2.19.5';
const DIR = join(import.meta.dirname, '../../../.data/bench');

/** Installs the rival beside the project, unless it is there. @throws Error that says what to do without npm */
export function installRival(write: (text: string) => void): void {
  if (existsSync(join(DIR, 'node_modules', RIVAL))) return;
  write(`installs ${RIVAL} into .data/bench\n`);
  mkdirSync(DIR, { recursive: true });
  const options = ['--prefix', DIR, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', ['install', ...options, `${RIVAL}@${VERSION}`], { stdio: 'inherit' });
  if (status === 0) return;
  const advice = 'Connect to the registry and try again, or run another bench: npm run bench -- first';
  throw new Error(`npm could not install ${RIVAL}. ${advice}`);
}

/** Loads what {@link installRival} has installed. */
export async function loadRival<T>(): Promise<T> {
  const { resolve } = createRequire(join(DIR, 'bench.js'));
  return (await import(pathToFileURL(resolve(RIVAL)).href)).default;
}
