import { appendFileSync, cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { spawnProcess } from './acceptance/support/processes.ts';
import { waitFor } from './acceptance/support/wait-for.ts';
import { findFreePort } from './support/free-port.ts';
import { tempDir } from './support/temp-dir.ts';

const ROOT = join(import.meta.dirname, '..');

test('npm run dev starts again after a change, also after one that did not load', async () => {
  const dir = tempDir();
  for (const part of ['src', 'jobs', 'views', 'package.json']) {
    cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  }
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'), 'junction');
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const [port, sandboxPort] = [await findFreePort(), await findFreePort()];
  const dev = spawnProcess(process.execPath, scripts.dev.replace('exec node ', '').split(' '), {
    cwd: dir,
    env: { ...process.env, PORT: String(port), SANDBOX_PORT: String(sandboxPort) },
  });
  const starts = () => dev.output().split('First: open').length - 1;
  await waitFor('the start', () => starts() === 1);
  const handler = join(dir, 'src/integration/handler.ts');
  const source = readFileSync(handler, 'utf8');
  appendFileSync(handler, '\nthis is no code');
  await dev.waitForOutput(/does not load/);
  writeFileSync(handler, source);
  await waitFor('another start', () => starts() === 2);
  appendFileSync(join(dir, 'views/landing.eta'), '\n');
  await waitFor('a start for a page', () => starts() === 3);
  expect(await dev.stop('SIGINT')).toEqual({ code: 0, signal: null });
  expect(starts()).toBe(3);
});
