import { constants, fstatSync, openSync, writeSync } from 'node:fs';
import { Writable } from 'node:stream';

/** How much of a log that cannot be written now is kept, in bytes; what comes then is lost. */
const LONGEST_BACKLOG = 4 * 1024 * 1024;

/** How soon it is tried again, in milliseconds. */
const AGAIN_MS = 50;

/** How long a process that ends waits for who reads its log, in milliseconds, and how often it looks. */
const END_MS = 1_000;
const END_LOOK_MS = 10;

const STANDARD_OUTPUT = 1;

/**
 * The log's way out, for which nobody waits: neither for a reader that stands still, be it a collector, a pager or a
 * terminal, nor for one that has gone, nor for room on a disk. While all is well, a line is out when it is written. What
 * cannot be written is kept up to a limit, and tried again and again; then it is said how many lines were lost.
 */
export class StandardOutput extends Writable {
  readonly #fd: number;
  readonly #backlog: Buffer[] = [];
  #kept = 0;
  #lost = 0;
  #timer: NodeJS.Timeout | undefined;

  /** @param fd instead of the standard output: one that does not block */
  constructor(fd = openStandardOutput()) {
    super({ decodeStrings: true });
    this.#fd = fd;
    process.once('exit', () => this.#end());
  }

  override _write(line: Buffer, _encoding: BufferEncoding, done: () => void): void {
    if (this.#kept + line.length > LONGEST_BACKLOG) this.#lost++;
    else this.#keep(line);
    this.#drain();
    done();
  }

  #keep(bytes: Buffer): void {
    this.#backlog.push(bytes);
    this.#kept += bytes.length;
  }

  /** Writes what can be written. */
  #drain(): void {
    // While it is tried again by itself, others need not.
    if (this.#timer === undefined && !this.#flush()) this.#tryAgain();
  }

  #tryAgain(): void {
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#drain();
    }, AGAIN_MS).unref();
  }

  /** @returns whether all of it is out */
  #flush(): boolean {
    try {
      for (let first = this.#backlog[0]; first !== undefined; first = this.#backlog[0]) {
        const written = writeSync(this.#fd, first);
        this.#kept -= written;
        if (written === first.length) this.#backlog.shift();
        else this.#backlog[0] = first.subarray(written);
        if (this.#backlog.length === 0 && this.#lost > 0) this.#tellLost();
      }
      return true;
    } catch {
      return false;
    }
  }

  #tellLost(): void {
    const line = {
      level: 'warn',
      time: new Date().toISOString(),
      lines: this.#lost,
      msg: 'lines of the log are lost',
    };
    this.#lost = 0;
    this.#keep(Buffer.from(`${JSON.stringify(line)}\n`));
  }

  /** The last lines say why a process ends: a reader that is only slow has a moment for them. */
  #end(): void {
    const look = new Int32Array(new SharedArrayBuffer(4));
    const giveUpAt = performance.now() + END_MS;
    while (!this.#flush() && performance.now() < giveUpAt) Atomics.wait(look, 0, 0, END_LOOK_MS);
  }
}

/**
 * The standard output, such that writing does not wait. Where it is a pipe or a terminal, it is opened anew: other
 * processes that have the same one, such as a shell, would find it changed else.
 */
function openStandardOutput(): number {
  const kind = fstatSync(STANDARD_OUTPUT);
  if (kind.isFIFO() || kind.isCharacterDevice()) {
    try {
      return openSync('/dev/fd/1', constants.O_WRONLY | constants.O_NONBLOCK | constants.O_NOCTTY);
    } catch {
      // No such files here, or none of ours to open.
    }
  }
  // Node sees to it that writing to a socket, or a pipe, does not wait, as soon as it has its own stream of it.
  void process.stdout;
  return STANDARD_OUTPUT;
}
