import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

const start = (...args: string[]) => spawnEntry('test/support/shutdown-process.ts', {}, { args });

it.each(['SIGTERM', 'SIGINT', 'SIGHUP'] as const)(
  'on %s it closes the last resource first, and exits 0',
  async (signal) => {
    const entry = start();
    await entry.waitForOutput(/ready/);
    expect(await entry.stop(signal)).toEqual({ code: 0, signal: null });
    expect(entry.output()).toContain(`"reason":"${signal}"`);
    expect(entry.output()).toMatch(/second begins[\s\S]*second closed[\s\S]*first closed/);
  },
);

it.each([
  ['an error that nobody caught', 'throw', /"uncaught exception"/],
  ['a rejection that nobody caught', 'reject', /"unhandled rejection"/],
  ['a closer that throws', 'close-badly', /"closing":"bad".*"could not be closed"/],
])('after %s it logs, closes the rest, and exits 1', async (_what, how, words) => {
  const entry = start(how);
  expect(await entry.exited).toEqual({ code: 1, signal: null });
  expect(entry.output()).toMatch(words);
  expect(entry.output()).toContain('first closed');
});

it('ignores a signal that npm passes on, and ends at once on a later one', async () => {
  const entry = start('hang');
  await entry.waitForOutput(/ready/);
  process.kill(entry.pid, 'SIGINT');
  await entry.waitForOutput(/shutting down/);
  process.kill(entry.pid, 'SIGINT');
  // It says so when half a second is over.
  await entry.waitForOutput(/still closing/);
  process.kill(entry.pid, 'SIGINT');
  expect(await entry.exited).toEqual({ code: 130, signal: null });
  expect(entry.output()).toContain('"hangs":"stuck"');
});

it('ends after ten seconds, and names the closer that hangs', async () => {
  const entry = start('hang');
  await entry.waitForOutput(/ready/);
  expect(await entry.stop()).toEqual({ code: 1, signal: null });
  expect(entry.output()).toMatch(/"hangs":"stuck".*the shutdown takes too long/);
});

// A terminal that was closed refuses whatever is written to it, as does this device.
const throughFullOutput = { through: ['sh', '-c', 'exec "$@" > /dev/full', 'sh'] };

it.skipIf(!existsSync('/dev/full'))('ends in order if nothing can write to its log', async () => {
  const file = join(tempDir(), 'closed');
  const entry = spawnEntry(
    'test/support/shutdown-process.ts',
    {},
    { args: ['touch', file], ...throughFullOutput },
  );
  await entry.waitForOutput(/runs/);
  expect(await entry.stop('SIGHUP'), entry.output()).toEqual({ code: 0, signal: null });
  expect(existsSync(file)).toBe(true);
});

it.skipIf(!existsSync('/dev/full'))('ends after an error that it can tell nobody', async () => {
  const entry = spawnEntry('test/support/shutdown-process.ts', {}, { args: ['throw'], ...throughFullOutput });
  expect(await entry.exited).toEqual({ code: 1, signal: null });
});
