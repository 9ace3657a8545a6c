import { type ChildProcess, spawn } from 'node:child_process';
import { connect } from 'node:net';
import { expect, test } from 'vitest';
import { findFreePort } from '../support/free-port.ts';
import { waitFor } from '../support/wait-for.ts';
import { copyApp } from './next-version.ts';

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
