import { appendFileSync, cpSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findFreePort } from './support/free-port.ts';
import { spawnProcess } from './support/spawn-entry.ts';
import { tempDir } from './support/temp-dir.ts';
import { waitFor } from './support/wait-for.ts';

const ROOT = join(import.meta.dirname, '..');

test('npm run dev starts again after a change, also after one that did not load', async () => {
  const dir = tempDir();
  for (const part of ['src', 'jobs', 'views', 'package.json']) {
    cpSync(join(ROOT, part), join(dir, part), { recursive: true });
  }
  cpSync(join(ROOT, 'test/support/no-settings.ts'), join(dir, 'src/integration/settings.ts'));
  symlinkSync(join(ROOT, 'node_modules'), join(dir, 'node_modules'), 'junction');
  const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8'));
  const [port, sandboxPort] = [await findFreePort(), await findFreePort()];
  const dev = spawnProcess(process.execPath, scripts.dev.replace('exec node ', '').split(' '), {
    cwd: dir,
    env: { ...process.env, PORT: String(port), SANDBOX_PORT: String(sandboxPort) },
  });
  const starts = () => dev.output().split('click Install').length - 1;
  await waitFor(() => starts() === 1, 'the start');
  const handler = join(dir, 'src/integration/handler.ts');
  const source = readFileSync(handler, 'utf8');
  appendFileSync(handler, '\nthis is no code');
  await dev.waitForOutput(/does not load/);
  writeFileSync(handler, source);
  await waitFor(() => starts() === 2, 'another start');
  appendFileSync(join(dir, 'views/landing.eta'), '\n');
  await waitFor(() => starts() === 3, 'a start for a page');
  expect(await dev.stop('SIGINT')).toEqual({ code: 0, signal: null });
  expect(starts()).toBe(3);
});
