import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { SandboxControl } from '../acceptance/support/sandbox-control.ts';
import { findFreePort } from '../support/free-port.ts';
import { createHttpSession } from '../support/http-session.ts';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { waitFor } from '../support/wait-for.ts';

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

test('started without configuration, everything runs, says where, and ends on Ctrl-C leaving nothing', async () => {
  const [port, sandboxPort] = [await findFreePort(), await findFreePort()];
  const app = spawnEntry('src/start.ts', { PORT: String(port), SANDBOX_PORT: String(sandboxPort) });
  await app.waitForOutput(/The partner app runs/);
  expect(app.output()).toContain(`http://localhost:${port}`);
  expect(app.output()).toContain(`http://127.0.0.1:${sandboxPort}`);

  const browser = createHttpSession(`http://localhost:${port}`);
  const { companies } = await new SandboxControl(`http://127.0.0.1:${sandboxPort}`).state();
  const pages = companies.map(({ counts }) => (counts.contacts ?? 0) + (counts.conversations ?? 0));
  expect(pages.length).toBe(3);
  expect(Math.max(...pages)).toBeGreaterThan(15_000);
  const smallest = companies[pages.indexOf(Math.min(...pages))];
  if (smallest === undefined) throw new Error('no company');
  const id = await install(browser, smallest);
  await waitForStatus(browser, id, isSynced);

  const redis = Number(/"port":(\d+),"msg":"private Redis is up"/.exec(app.output())?.[1]);
  expect(await isListening(redis)).toBe(true);
  expect(await app.stop('SIGINT')).toEqual({ code: 0, signal: null });
  expect(await isListening(port)).toBe(false);
  expect(await isListening(sandboxPort)).toBe(false);
  await waitFor(async () => !(await isListening(redis)), {
    what: 'the private Redis to end',
  });
});

test('with a service configured, no sandbox is started', async () => {
  const [port, sandboxPort] = [await findFreePort(), await findFreePort()];
  const app = spawnEntry('src/start.ts', {
    PORT: String(port),
    SANDBOX_PORT: String(sandboxPort),
    SERVICE_API_URL: 'http://127.0.0.1:9/api',
    SERVICE_AUTH_URL: 'http://127.0.0.1:9/auth',
    CLIENT_ID: 'id',
    CLIENT_SECRET: 'secret',
  });
  await app.waitForOutput(/The partner app runs/);
  expect(app.output()).toContain('http://127.0.0.1:9/api');
  expect(await isListening(sandboxPort)).toBe(false);
  expect((await app.stop('SIGTERM')).code).toBe(0);
});

test('a port that is taken is named, with the variable that changes it', async () => {
  const [port, sandboxPort] = [await findFreePort(), await findFreePort()];
  const env = { PORT: String(port), SANDBOX_PORT: String(sandboxPort) };
  const first = spawnEntry('src/start.ts', env);
  await first.waitForOutput(/The partner app runs/);
  const second = spawnEntry('src/start.ts', env);
  expect((await second.exited).code).toBe(1);
  expect(second.output()).toMatch(new RegExp(`Port ${sandboxPort} is in use.*SANDBOX_PORT`));
  const third = spawnEntry('src/start.ts', { ...env, SANDBOX_PORT: String(await findFreePort()) });
  expect((await third.exited).code).toBe(1);
  expect(third.output()).toMatch(new RegExp(`Port ${port} is in use.*PORT`));
  // In order, or its private Redis would outlive it.
  expect((await first.stop('SIGTERM')).code).toBe(0);
});

test('the demo installs, copies, compares, and ends with 0', async () => {
  const demo = spawnEntry('src/demo.ts');
  expect((await demo.exited).code, demo.output()).toBe(0);
  expect(demo.output()).toMatch(/4000 records in [\d.]+ s: nothing is missing, nothing is double/);
});

test('a demo that is interrupted does not end with 0', async () => {
  const demo = spawnEntry('src/demo.ts', {}, { args: ['--all'] });
  await demo.waitForOutput(/Installing/);
  expect((await demo.stop('SIGINT')).code).toBe(130);
  expect(demo.output()).not.toContain('failed');
});

test('a demo that is told what it does not know says what it takes', async () => {
  const demo = spawnEntry('src/demo.ts', {}, { args: ['--al'] });
  expect((await demo.exited).code).toBe(2);
  expect(demo.output()).toContain('--all');
});

test.each(['start', 'web', 'worker', 'keys', 'reencrypt', 'sandbox/main'])(
  'what takes no arguments (%s) is told none: it does nothing, and says so',
  async (entry) => {
    const process = spawnEntry(`src/${entry}.ts`, {}, { args: ['--dry-run'] });
    expect((await process.exited).code).toBe(2);
    expect(process.output()).toMatch(
      /^--dry-run is not understood, and nothing was done\. .+ \.env\.example\.\n$/,
    );
  },
);

test('wrong configuration ends the start with every problem', async () => {
  const app = spawnEntry('src/start.ts', { PORT: 'many', SYNC_INTERVAL_MINUTES: '-1', TOKEN_KEYS: 'short' });
  expect((await app.exited).code).toBe(1);
  for (const variable of ['PORT', 'SYNC_INTERVAL_MINUTES', 'TOKEN_KEYS']) {
    expect(app.output()).toContain(variable);
  }
});
