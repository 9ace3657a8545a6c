import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { text } from 'node:stream/consumers';
import { expect, test } from 'vitest';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const RUNTIME = join(ROOT, 'src/runtime');
const PRELOAD = join(RUNTIME, 'preload.js');

/** Runs a script as npm runs an entry point. @returns its standard output and its standard error */
async function run(script: string, env = {}, preload = PRELOAD): Promise<[string, string]> {
  const child = spawn(process.execPath, ['--import', preload, '--input-type=module', '-e', script], {
    cwd: ROOT,
    env: { PATH: process.env.PATH ?? '', ...env },
  });
  return Promise.all([text(child.stdout), text(child.stderr)]);
}

test.each([
  {
    hasNode: false,
    env: {},
    advice: /^Run "npm rebuild node --ignore-scripts=false":.*\nOr install Node 24/m,
  },
  { hasNode: true, env: {}, advice: /^Use an npm script.*\nOr install Node 24/m },
  {
    hasNode: true,
    env: { npm_lifecycle_event: 'start' },
    advice: /does not run on this.*\nInstall Node 24/m,
  },
])('an old Node says what helps: $hasNode, $env', async ({ hasNode, env, advice }) => {
  const copy = tempDir();
  cpSync(RUNTIME, join(copy, 'src/runtime'), { recursive: true });
  mkdirSync(join(copy, 'node_modules/node/bin'), { recursive: true });
  if (hasNode) writeFileSync(join(copy, 'node_modules/node/bin/node'), '');
  const preload = join(copy, 'old.mjs');
  const old = "Object.defineProperty(process, 'versions', { value: { node: '20.1.0' } });";
  const file = JSON.stringify(join(copy, 'src/runtime/preload.js'));
  writeFileSync(preload, `${old} await import(${file});`);
  const [, told] = await run("console.log('runs')", env, preload);
  expect(told).toContain('The app needs Node 24 or newer, and this is Node 20.1.0.\n');
  expect(told).toMatch(advice);
});

test('a report of a crash leaves out the environment, which holds keys', async () => {
  const [report] = await run('console.log(JSON.stringify(process.report.getReport()))', {
    CLIENT_SECRET: 'hush',
  });
  expect(JSON.parse(report).header.processId).toBeGreaterThan(0);
  expect(report).not.toContain('hush');
});

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
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}

test('a process ends with the shell above it if npm started it, and else does not', async () => {
  const [watching, other] = await Promise.all(
    [{ npm_lifecycle_event: 'start' }, {}].map((env) => startBelowShell(env)),
  );
  for (const process of [other, watching]) process?.shell.kill('SIGKILL');
  await waitFor(() => !isAlive(watching?.pid ?? 0), 'the watching process to end');
  expect(isAlive(other?.pid ?? 0)).toBe(true);
  process.kill(other?.pid ?? 0, 'SIGKILL');
});

test('a process keeps its compiled code, and waits longer for an address of several', async () => {
  const script = `import module from 'node:module'; import net from 'node:net';
    console.log(module.getCompileCacheDir(), net.getDefaultAutoSelectFamilyAttemptTimeout());`;
  const [output] = await run(script);
  expect(output).toContain(join(ROOT, 'node_modules/.cache/compiled'));
  expect(output).toMatch(/ 2000\n$/);
});

test('DEBUG is ignored, because libraries then log secrets', async () => {
  const connect = `import { Redis } from 'ioredis';
    const redis = new Redis('redis://:pass-of-redis@127.0.0.1:9', { retryStrategy: null });
    redis.on('error', () => console.log('through'));`;
  const [output, told] = await run(connect, { DEBUG: '*' });
  expect(output).toBe('through\n');
  expect(told).toBe(
    'The app ignores DEBUG, because libraries then log secrets. Use LOG_LEVEL=debug instead.\n',
  );
});

test('SIGUSR1, which scripts that rotate logs send, opens no debugger', async () => {
  const script = `import { url } from 'node:inspector';
    process.kill(process.pid, 'SIGUSR1');
    setTimeout(() => console.log(url() ?? 'none'), 200);`;
  expect(await run(script)).toEqual(['none\n', '']);
});
