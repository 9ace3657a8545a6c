import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { PATIENCE_MS, waitFor } from './wait-for.ts';

export const ROOT = join(import.meta.dirname, '../../..');

const dirs: string[] = [];
const children = new Set<ChildProcess>();

afterAll(async () => {
  await Promise.all(
    [...children].map(async (child) => {
      if (child.exitCode !== null || child.signalCode !== null) return;
      child.kill('SIGKILL');
      await once(child, 'close');
    }),
  );
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

/** Makes an empty directory; it is removed when the test file is through. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'partner-app-acceptance-'));
  dirs.push(dir);
  return dir;
}

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process that a test has started. */
export interface TestProcess {
  pid: number;
  /** Standard output and error output so far, as they came. */
  output(): string;
  /** Resolves when the output matches; rejects when the process ends before. */
  waitForOutput(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  exited: Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal, SIGTERM by default, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

/** Starts a command; what still runs when the test file is through is killed. */
export function spawnProcess(
  command: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string>; stdin?: string },
): TestProcess {
  const child = spawn(command, args, { cwd: options.cwd, env: options.env, stdio: 'pipe' });
  if (child.pid === undefined) throw new Error(`${command} could not be started`);
  child.stdin.on('error', () => undefined).end(options.stdin ?? '');
  children.add(child);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  let end: Exit | undefined;
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      children.delete(child);
      end = { code, signal };
      resolve(end);
    });
  });
  return {
    pid: child.pid,
    output: () => output,
    async waitForOutput(pattern, timeoutMs = PATIENCE_MS) {
      const what = `${args.at(-1)} to write ${pattern}`;
      const found = await waitFor(what, () => pattern.exec(output) ?? end, timeoutMs);
      if (Array.isArray(found)) return found;
      throw new Error(`It ended (${JSON.stringify(end)}) before ${what}\n${output}`);
    },
    exited,
    signal: (signal) => child.kill(signal),
    stop(signal = 'SIGTERM') {
      if (end === undefined) child.kill(signal);
      return exited;
    },
  };
}

/**
 * Starts an entry point of the app, as its npm script does, but without the fork's handler and resources: it has the
 * handler of the file that TEST_HANDLER names, or none, and copies the usual two lists.
 *
 * @param entry its path from the root, such as `src/worker.ts`
 * @param env all of its environment besides PATH and HOME
 */
export function spawnEntry(
  entry: string,
  env: Record<string, string>,
  options: { cwd: string; args?: readonly string[] },
): TestProcess {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
  const imports = [
    join(ROOT, 'src/runtime/preload.js'),
    join(import.meta.dirname, 'use-handler.js'),
    join(ROOT, 'test/support/with-usual-resources.js'),
  ];
  const flags = imports.flatMap((path) => ['--import', path]);
  return spawnProcess(process.execPath, [...flags, join(ROOT, entry), ...(options.args ?? [])], {
    cwd: options.cwd,
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
  });
}
