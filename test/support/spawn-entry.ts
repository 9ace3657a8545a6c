import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { afterAll } from 'vitest';
import { PATIENCE_MS } from './patience.ts';
import { tempDir } from './temp-dir.ts';
import { waitFor } from './wait-for.ts';

const ROOT = join(import.meta.dirname, '../..');
const PRELOAD = 'src/runtime/preload.js';
const WITHOUT_HANDLER = join(import.meta.dirname, 'without-handler.js');
const WITH_USUAL_RESOURCES = join(import.meta.dirname, 'with-usual-resources.js');

/** How a process ended. */
export interface Exit {
  code: number | null;
  signal: NodeJS.Signals | null;
}

/** A running entry point. */
export interface EntryProcess {
  pid: number;
  /** Everything that it has written so far, standard output and error output as they came. */
  output(): string;
  /** Resolves when the output matches; fails when the process ends before. */
  waitForOutput(pattern: RegExp, timeoutMs?: number): Promise<RegExpExecArray>;
  /** Resolves when it has ended. */
  exited: Promise<Exit>;
  /** Sends a signal, unless it has ended already, and waits for the end. */
  stop(signal?: NodeJS.Signals): Promise<Exit>;
}

const running = new Set<EntryProcess>();

afterAll(async () => {
  await Promise.all([...running].map((entry) => entry.stop('SIGKILL')));
});

/**
 * Starts an entry point as a process of its own, as the npm scripts do, but without what an integrator has put in:
 * a fork's handler is not to be told what tests make up. What still runs when the test file is through is killed.
 *
 * @param entry path from the root of the repository, such as `src/worker.ts`
 * @param env all of its environment, besides PATH, HOME and where Node keeps what it has compiled
 * @param options.cwd its current directory, where it keeps `.data`; by default an empty one
 * @param options.root of another version of the repository
 * @param options.hasHandler whether it has the integrator's handler after all
 * @param options.through a command that becomes the one that its arguments end with
 */
export function spawnEntry(
  entry: string,
  env: Record<string, string> = {},
  options: {
    cwd?: string;
    args?: string[];
    root?: string;
    through?: readonly string[];
    hasHandler?: boolean;
  } = {},
): EntryProcess {
  const { PATH = '', HOME = '', NODE_COMPILE_CACHE = '' } = process.env;
  const { root = ROOT, args = [] } = options;
  const imports = [
    join(root, PRELOAD),
    WITH_USUAL_RESOURCES,
    ...(options.hasHandler ? [] : [WITHOUT_HANDLER]),
  ];
  const flags = imports.flatMap((path) => ['--import', path]);
  const node = [process.execPath, ...flags, join(root, entry), ...args];
  const [command = '', ...rest] = [...(options.through ?? []), ...node];
  const child = spawn(command, rest, {
    cwd: options.cwd ?? tempDir(),
    env: { PATH, HOME, NODE_COMPILE_CACHE, ...env },
    stdio: ['ignore', 'pipe', 'pipe'],
  });
  if (child.pid === undefined) throw new Error(`${entry} could not be started`);
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
      running.delete(entryProcess);
      resolve(end);
    });
  });
  const entryProcess: EntryProcess = {
    pid: child.pid,
    output: () => output,
    waitForOutput: async (pattern, timeoutMs = PATIENCE_MS) => {
      const found = await waitFor(() => pattern.exec(output) ?? end, {
        timeoutMs,
        what: `${entry} to write ${pattern}`,
      });
      if (Array.isArray(found)) return found;
      throw new Error(`${entry} ended before it wrote ${pattern}: ${JSON.stringify(end)}\n${output}`);
    },
    exited,
    stop: (signal = 'SIGTERM') => {
      if (end === undefined) child.kill(signal);
      return exited;
    },
  };
  running.add(entryProcess);
  return entryProcess;
}
