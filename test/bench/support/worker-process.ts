import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';
import { endIfInterrupted } from './leftovers.ts';
import { type ProcessUsage, usageOf } from './process-usage.ts';

const ROOT = join(import.meta.dirname, '../../..');
const START_LIMIT_MS = 30_000;
/** What it logs when it takes jobs. */
const READY = 'the workers run';

/** `src/worker.ts` as `npm run worker` starts it, in a process of its own. */
export class WorkerProcess {
  readonly #process: ChildProcess;
  #output = '';

  private constructor(child: ChildProcess) {
    this.#process = child;
    for (const stream of [child.stdout, child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.#output += text;
      });
    }
  }

  /** Starts it and waits until it takes jobs. @param env all of its environment, besides PATH and HOME */
  static async start(env: Readonly<Record<string, string>>): Promise<WorkerProcess> {
    const { PATH = '', HOME = '' } = process.env;
    const child = spawn(
      process.execPath,
      ['--import', join(ROOT, 'src/runtime/preload.js'), join(ROOT, 'src/worker.ts')],
      { cwd: ROOT, env: { PATH, HOME, ...env }, stdio: ['ignore', 'pipe', 'pipe'] },
    );
    const worker = new WorkerProcess(child);
    child.once(
      'exit',
      endIfInterrupted(() => child.kill('SIGKILL')),
    );
    await worker.#ready();
    return worker;
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('the worker did not start');
    return pid;
  }

  /** Undefined without `/proc`, and after its end. */
  usage(): ProcessUsage | undefined {
    return usageOf(this.pid);
  }

  /** Ends it and waits for that; with SIGKILL nothing is put in order. */
  async stop(signal: 'SIGTERM' | 'SIGKILL' = 'SIGTERM'): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill(signal);
    await exited;
  }

  async #ready(): Promise<void> {
    const stopped = new AbortController();
    const options = { signal: stopped.signal };
    const late = AbortSignal.timeout(START_LIMIT_MS);
    try {
      while (!this.#output.includes(READY)) {
        if (this.#process.exitCode !== null || late.aborted) {
          await this.stop('SIGKILL');
          throw new Error(`the worker did not start:\n${this.#output}`);
        }
        await Promise.race([
          once(this.#process.stdout ?? this.#process, 'data', options),
          once(this.#process, 'exit', options),
          once(late, 'abort', options),
        ]);
      }
    } finally {
      stopped.abort();
    }
  }
}
