import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { type Exit, spawnEntry } from '../support/spawn-entry.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { copyApp } from './next-version.ts';

const THROWER = join(import.meta.dirname, '../support/throw-on-signal.ts');

/** How a worker comes to its end, and what it says then. */
const ENDS: [NodeJS.Signals, Exit, RegExp][] = [
  ['SIGTERM', { code: 0, signal: null }, /"reason":"SIGTERM","msg":"shutting down"/],
  ['SIGUSR2', { code: 1, signal: null }, /"level":"fatal".*nobody catches this.*"msg":"uncaught exception"/],
  ['SIGHUP', { code: 0, signal: null }, /"reason":"SIGHUP","msg":"shutting down"/],
  ['SIGQUIT', { code: 1, signal: null }, /"level":"fatal".*nobody handles this.*"msg":"unhandled rejection"/],
];

test('a worker that a signal or an error ends leaves nothing half done, and the next goes on where it stopped', async () => {
  const testApp = await startTestApp({ workers: false, sandbox: { latencyMs: 5 } });
  const worker = async () => {
    const process = spawnEntry('src/worker.ts', { ...testApp.env, NODE_OPTIONS: `--import=${THROWER}` });
    await process.waitForOutput(/the workers run/);
    return process;
  };
  const company = await testApp.control.addCompany({ name: 'Ended', plan: 'enterprise', contacts: 6_050 });
  const browser = testApp.session();
  // Slow, so that requests are under way when a worker ends, and the run is.
  await testApp.control.fault({ match: { path: '/contacts' }, fault: { delay_ms: 200 }, times: 1_000 });
  let next = await worker();
  const id = await install(browser, company);
  const pages = async () => (await readStatus(browser, id)).resources.contacts?.pages ?? 0;

  for (const [signal, exit, line] of ENDS) {
    const before = await pages();
    await waitFor(async () => (await pages()) > before + 2);
    expect(await next.stop(signal)).toEqual(exit);
    expect(next.output()).toMatch(line);
    expect(next.output()).toContain('"msg":"shut down"');
    // Whole pages, their count and the cursor, all of one moment.
    const { contacts } = (await readStatus(browser, id)).resources;
    expect(contacts).toMatchObject({ state: 'waiting', error: null });
    expect((await downloadIds(browser, id, 'contacts')).length).toBe(contacts?.records);
    next = await worker();
  }
  await testApp.control.clearFaults();
  await waitForStatus(browser, id, isSynced);
  await next.stop();

  const ids = await downloadIds(browser, id, 'contacts');
  expect(ids.length).toBe(company.counts.contacts);
  expect(new Set(ids).size).toBe(ids.length);
  const asked = (await testApp.control.requests()).filter(({ path }) => path.endsWith('/contacts'));
  // Each end costs a page that was read and not written, and the request that was under way, and no more.
  const written = (await readStatus(browser, id)).resources.contacts?.pages ?? 0;
  expect(asked.length).toBeLessThanOrEqual(written + 2 * ENDS.length);
});

test('a web process whose thread has searched ends in order', async () => {
  const testApp = await startTestApp({ workers: false });
  const browser = testApp.session();
  const id = await install(browser, await testApp.control.addCompany({ name: 'Sought', plan: 'starter' }));
  const port = await findFreePort();
  const web = spawnEntry('src/web.ts', { ...testApp.env, PORT: String(port) });
  await web.waitForOutput(/the web app listens/);
  const cookie = browser.cookies.header(new URL(testApp.config.publicUrl)) ?? '';
  const found = await fetch(`http://127.0.0.1:${port}/instances/${id}/contacts?q=word`, {
    headers: { cookie },
  });
  expect(await found.text()).toContain('Nothing in the copy has these words');
  expect(await web.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(web.output()).toContain('"msg":"shut down"');
});

test('a second signal ends a process at once that hangs in its shutdown, and the log says in what', async () => {
  const entry = spawnEntry('test/support/shutdown-process.ts', {}, { args: ['hang'] });
  await entry.waitForOutput(/ready/);
  const end = entry.stop('SIGTERM');
  await entry.waitForOutput(/shutting down/);
  // Very soon after the first it counts as the same wish: so it is said until it is heard.
  const again = setInterval(() => process.kill(entry.pid, 'SIGTERM'), 100);
  expect(await end.finally(() => clearInterval(again))).toEqual({ code: 143, signal: null });
  expect(entry.output()).toMatch(/"hangs":"stuck","msg":"a second signal: ending at once"/);
  expect(entry.output()).not.toContain('closed in order');
});

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, '127.0.0.1');
    socket.once('connect', () => resolve(true)).once('error', () => resolve(false));
    socket.once('connect', () => socket.destroy());
  });
}

/** Runs `npm start` as the leader of a group of its own, ends it as `end` says, and looks that nothing of it is left. */
async function startAndEnd(
  end: (npm: ChildProcess, group: number) => unknown,
  onTestFinished: (clear: () => void) => void,
): Promise<void> {
  const [port, sandboxPort] = [await findFreePort(), await findFreePort()];
  const { PATH = '', HOME = '' } = process.env;
  const npm = spawn('npm', ['start'], {
    cwd: copyApp(),
    env: { PATH, HOME, PORT: String(port), SANDBOX_PORT: String(sandboxPort), LOG_LEVEL: 'info' },
    stdio: ['ignore', 'pipe', 'pipe'],
    detached: true,
  });
  const group = -(npm.pid ?? 0);
  let output = '';
  for (const stream of [npm.stdout, npm.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  // When nobody has its output any more: npm, the shell, the app, its Redis.
  let isOver = false;
  npm.once('close', () => {
    isOver = true;
  });
  onTestFinished(() => {
    if (!isOver) process.kill(group, 'SIGKILL');
  });
  await waitFor(() => /The partner app runs/.test(output), { what: 'npm start' });
  const redis = Number(/"port":(\d+),"msg":"private Redis is up"/.exec(output)?.[1]);
  expect(await isListening(redis)).toBe(true);

  end(npm, group);
  await waitFor(() => isOver, { what: 'npm and all below it to end' });
  expect(output).toContain('"msg":"shut down"');
  expect(output).not.toContain('a second signal');
  for (const one of [port, sandboxPort]) expect(await isListening(one)).toBe(false);
  await waitFor(async () => !(await isListening(redis)), { what: 'the private Redis to end' });
}

test.concurrent.for(['SIGINT', 'SIGTERM', 'SIGHUP'] as const)(
  'npm start under a supervisor, which sends %s to npm alone, ends everything in order',
  (signal, { onTestFinished }) => startAndEnd((npm) => npm.kill(signal), onTestFinished),
);

test.concurrent('npm start at a terminal that is closed, which sends SIGHUP to npm and all below it, ends everything in order', ({
  onTestFinished,
}) => startAndEnd((_npm, group) => process.kill(group, 'SIGHUP'), onTestFinished));
