import { type ChildProcess, fork } from 'node:child_process';
import { once } from 'node:events';
import { join } from 'node:path';

/** A process of a bench that answers each message with one. */
export class Child {
  readonly #process: ChildProcess;

  /**
   * @param file in test/bench
   * @param order what it reads as JSON from its first argument
   */
  constructor(file: string, execArgv: readonly string[] = [], order?: unknown) {
    const args = order === undefined ? [] : [JSON.stringify(order)];
    this.#process = fork(join(import.meta.dirname, '..', file), args, { execArgv: [...execArgv] });
  }

  get pid(): number {
    const { pid } = this.#process;
    if (pid === undefined) throw new Error('the process did not start');
    return pid;
  }

  /** What it says next. Rejects when it ends instead. */
  said<T>(): Promise<T> {
    return new Promise((resolve, reject) => {
      const ended = (code: number | null) => reject(new Error(`the process ended with ${code}`));
      this.#process.once('exit', ended);
      this.#process.once('message', (message) => {
        this.#process.off('exit', ended);
        resolve(message as T);
      });
    });
  }

  ask<T>(message: object): Promise<T> {
    const answer = this.said<T>();
    this.send(message);
    return answer;
  }

  /** Tells it something that it does not answer. */
  send(message: object): void {
    this.#process.send(message);
  }

  /** It ends by itself then. */
  end(): void {
    if (this.#process.connected) this.#process.disconnect();
  }

  /** Ends it at once, with nothing put in order, and waits for that. */
  async kill(): Promise<void> {
    if (this.#process.exitCode !== null || this.#process.signalCode !== null) return;
    const exited = once(this.#process, 'exit');
    this.#process.kill('SIGKILL');
    await exited;
  }
}
