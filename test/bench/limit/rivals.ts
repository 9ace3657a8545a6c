import { spawnSync } from 'node:child_process';
import { existsSync, mkdirSync } from 'node:fs';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';

/** Libraries that only this bench uses. A fork does not install them with its own. */
const RIVALS: Readonly<Record<string, string>> = { bottleneck: '2.19.5', 'p-throttle': '8.1.1' };

const DIR = join(import.meta.dirname, '../../../.data/bench');

/** Installs the rivals beside the project, unless they are there. @throws Error that says what to do without npm */
export function installRivals(write: (text: string) => void): void {
  if (Object.keys(RIVALS).every((name) => existsSync(join(DIR, 'node_modules', name)))) return;
  const wanted = Object.entries(RIVALS).map(([name, version]) => `${name}@${version}`);
  write(`installs ${wanted.join(' and ')} into .data/bench\n`);
  mkdirSync(DIR, { recursive: true });
  const options = ['--prefix', DIR, '--no-save', '--ignore-scripts', '--no-audit', '--no-fund'];
  const { status } = spawnSync('npm', ['install', ...options, ...wanted], { stdio: 'inherit' });
  if (status === 0) return;
  const advice = 'Connect to the registry and try again, or run another bench: npm run bench -- first';
  throw new Error(`npm could not install ${wanted.join(' and ')}. ${advice}`);
}

/** Loads a rival that {@link installRivals} has installed. */
export async function loadRival<T>(name: string): Promise<T> {
  const { resolve } = createRequire(join(DIR, 'bench.js'));
  return (await import(pathToFileURL(resolve(name)).href)).default;
}
