import { type ChildProcess, fork } from 'node:child_process';
import { join } from 'node:path';

/** A process of a bench that answers each message with one. */
export class Child {
  readonly #process: ChildProcess;

  /** @param file beside this one */
  constructor(file: string, execArgv: readonly string[] = []) {
    this.#process = fork(join(import.meta.dirname, file), { execArgv: [...execArgv] });
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
    this.#process.send(message);
    return answer;
  }

  /** It ends by itself then. */
  end(): void {
    if (this.#process.connected) this.#process.disconnect();
  }
}
