import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { connect } from 'node:net';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, onTestFinished, test } from 'vitest';
import { waitFor } from '../support/wait-for.ts';

const PRELOAD = join(import.meta.dirname, '../../src/runtime/preload.js');

/** Runs a process below a shell, as npm does; it writes its id, and lives until it gets a SIGTERM. */
async function startBelowShell(env: Record<string, string>) {
  const script =
    "process.on('SIGTERM', () => process.exit(0)); setInterval(() => {}, 1000); console.log(process.pid)";
  const shell = spawn('sh', ['-c', `"${process.execPath}" --import "${PRELOAD}" -e "${script}"; true`], {
    env: { PATH: process.env.PATH ?? '', ...env },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  const [line] = await once(shell.stdout, 'data');
  return { shell, pid: Number(String(line)) };
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

test('a process that npm started ends when the shell in between is gone', async () => {
  const { shell, pid } = await startBelowShell({ npm_lifecycle_event: 'start' });
  shell.kill('SIGKILL');
  await waitFor(() => !isAlive(pid), 'the process to end');
});

test('a process that was started otherwise does not care who its parent is', async () => {
  const { shell, pid } = await startBelowShell({});
  const watched = await startBelowShell({ npm_lifecycle_event: 'start' });
  shell.kill('SIGKILL');
  watched.shell.kill('SIGKILL');
  await waitFor(() => !isAlive(watched.pid), 'the watched process to end');
  expect(isAlive(pid)).toBe(true);
  process.kill(pid, 'SIGKILL');
});

test('what a process compiled is kept for the next one, among what npm brings', async () => {
  const child = spawn(
    process.execPath,
    ['--import', PRELOAD, '-p', "require('node:module').getCompileCacheDir()"],
    { env: { PATH: process.env.PATH ?? '' }, stdio: ['ignore', 'pipe', 'inherit'] },
  );
  const [line] = await once(child.stdout, 'data');
  expect(String(line)).toContain(join(import.meta.dirname, '../../node_modules/.cache/compiled'));
});

/** Runs a script as an entry point is run. @returns what it wrote on standard output and on standard error */
async function run(script: string, env: Record<string, string>): Promise<[string, string]> {
  const child = spawn(process.execPath, ['--import', PRELOAD, '--input-type=module', '-e', script], {
    cwd: join(import.meta.dirname, '../..'),
    env: { PATH: process.env.PATH ?? '', ...env },
  });
  return Promise.all([text(child.stdout), text(child.stderr)]);
}

test('DEBUG, at which libraries log secrets, is not heeded, and that is said', async () => {
  const connect = `import { Redis } from 'ioredis';
    const redis = new Redis('redis://:pass-of-redis@127.0.0.1:9', { retryStrategy: null });
    redis.on('error', () => console.log('through'));`;
  expect(await run(connect, { DEBUG: '*' })).toEqual([
    'through\n',
    'DEBUG is not heeded, as libraries log secrets then. LOG_LEVEL=debug says more.\n',
  ]);
  expect(await run(connect, {})).toEqual(['through\n', '']);
});

test('SIGUSR1, as scripts that rotate logs send it, opens no debugger', async () => {
  const script = `import { url } from 'node:inspector';
    process.kill(process.pid, 'SIGUSR1');
    setTimeout(() => console.log(url() ?? 'none'), 200);`;
  expect(await run(script, {})).toEqual(['none\n', '']);
});

/** Listens, and accepts nobody until it is let go on: a full queue drops what a client sends, which tries again a second later. */
async function startFullServer() {
  const script = `const server = require('node:net').createServer().listen(0, '127.0.0.1', 1, () =>
    console.log(server.address().port))`;
  const child = spawn(process.execPath, ['-e', script], { stdio: ['ignore', 'pipe', 'inherit'] });
  const port = Number(String((await once(child.stdout, 'data'))[0]));
  child.kill('SIGSTOP');
  const fillers = Array.from({ length: 5 }, () => connect(port, '127.0.0.1').on('error', () => {}));
  await Promise.all(fillers.slice(0, 2).map((filler) => once(filler, 'connect')));
  onTestFinished(() => {
    for (const filler of fillers) filler.destroy();
    child.kill('SIGKILL');
  });
  return { port, goOn: () => child.kill('SIGCONT') };
}

test.runIf(process.platform === 'linux')(
  'the first of two addresses is waited for, though it answers late',
  async () => {
    const { port, goOn } = await startFullServer();
    const addresses = `[{ address: '127.0.0.1', family: 4 }, { address: '::1', family: 6 }]`;
    const script = `import { connect } from 'node:net';
      const lookup = (_host, _options, done) => setImmediate(done, null, ${addresses});
      const socket = connect({ host: 'far.example', port: ${port}, lookup, autoSelectFamily: true });
      socket.on('connectionAttempt', (address) => console.log('to', address));
      socket.on('connect', () => process.exit(console.log('connected')));
      socket.on('error', (error) => console.log(error.code));`;
    const child = spawn(process.execPath, ['--import', PRELOAD, '--input-type=module', '-e', script], {
      stdio: ['ignore', 'pipe', 'inherit'],
    });
    child.stdout.once('data', goOn);
    expect(await text(child.stdout)).toBe('to 127.0.0.1\nconnected\n');
  },
);
