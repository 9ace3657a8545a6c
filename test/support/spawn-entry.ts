import { spawn } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { tempDir } from './temp-dir.ts';
import { PATIENCE_MS, waitFor } from './wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const WITHOUT_FORK = join(import.meta.dirname, 'without-fork.js');

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A process that a test has started. */
export interface TestProcess {
  pid: number;
  /** Standard output and standard error so far. */
  output(): string;
  /** Resolves when the output matches. @throws Error when the process ends before */
  waitForOutput(pattern: RegExp): Promise<RegExpExecArray>;
  exited: Promise<Exit>;
  signal(signal: NodeJS.Signals): void;
  /** Sends a signal, SIGTERM by default, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

const running = new Set<TestProcess>();

afterAll(async () => {
  await Promise.all([...running].map((one) => one.stop('SIGKILL')));
});

/** Starts a command, and kills it at the end of the test file. */
export function spawnProcess(
  command: string,
  args: readonly string[],
  options: { cwd: string; env: Record<string, string> },
): TestProcess {
  const child = spawn(command, args, { ...options, stdio: ['ignore', 'pipe', 'pipe'] });
  if (child.pid === undefined) throw new Error(`${command} could not be started`);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.setEncoding('utf8').on('data', (text: string) => {
      output += text;
    });
  }
  let end: Exit | undefined;
  const exited = new Promise<Exit>((resolve) => {
    child.once('close', (code, signal) => {
      end = { code, signal };
      running.delete(started);
      resolve(end);
    });
  });
  const started: TestProcess = {
    pid: child.pid,
    output: () => output,
    async waitForOutput(pattern) {
      const what = `${args.at(-1)} to write ${pattern}`;
      const found = await waitFor(() => pattern.exec(output) ?? end, what, PATIENCE_MS);
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
  running.add(started);
  return started;
}

/**
 * Starts an entry point as its npm script does, without the fork's handler, events, settings and resources.
 *
 * @param entry its path from the root, such as `src/worker.ts`
 * @param env all of its environment, except PATH, HOME and NODE_COMPILE_CACHE
 * @param options.cwd its current directory, which holds `.data`; an empty one by default
 * @param options.root the root of another copy of the repository
 * @param options.through a command that executes its arguments
 */
export function spawnEntry(
  entry: string,
  env: Record<string, string> = {},
  options: { cwd?: string; args?: readonly string[]; root?: string; through?: readonly string[] } = {},
): TestProcess {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
  const { cwd = tempDir(), args = [], root = ROOT, through = [] } = options;
  const flags = [join(root, 'src/runtime/preload.js'), WITHOUT_FORK].flatMap((path) => ['--import', path]);
  const [command = '', ...rest] = [...through, process.execPath, ...flags, join(root, entry), ...args];
  return spawnProcess(command, rest, { cwd, env: { PATH, HOME, NODE_COMPILE_CACHE, ...env } });
}

const { scripts } = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')) as {
  scripts: Record<string, string>;
};

/** Starts the entry point of `npm run <script>`, without npm. */
export function startScript(
  script: string,
  env: Record<string, string>,
  options: { cwd?: string } = {},
): TestProcess {
  const [, entry, args = ''] = / (src\/\S+\.ts)(.*)$/.exec(scripts[script] ?? '') ?? [];
  if (entry === undefined) throw new Error(`there is no script ${script}`);
  return spawnEntry(entry, env, { ...options, args: args.split(' ').filter(Boolean) });
}
