import { setTimeout as sleep } from 'node:timers/promises';
import { LostFileError } from '../store/own-file.ts';

/** How soon what could not be written is tried again, in milliseconds. */
const AGAIN_MS = 2_000;

/** How soon at the end of the process, in milliseconds. */
const AGAIN_AT_END_MS = 100;

/** What has kept it from being written where no try has failed. */
const STILL_TRIED = 'It was still being tried when the time was over.';

/** Something that came for an instance, and what keeps it from being written. */
interface Unwritten {
  instanceId: string;
  error: unknown;
}

/** Who is told of what cannot be written at once. */
export interface KeptWritesParts {
  /** Told of each try that fails, until the end of the process. */
  onFailure: (instanceId: string) => Promise<void>;
  /** Told of the first of them, where it is tried on. */
  onUnwritten?: ((unwritten: Unwritten) => void) | undefined;
  /** Told of what is written after all, or is not the newest any more. */
  onWritten?: ((written: { instanceId: string; isNewest: boolean }) => void) | undefined;
  /** Told of what is not written when the process ends. */
  onLost?: ((lost: Unwritten) => void) | undefined;
}

/** How what has come for an instance is written. */
interface Writing {
  /** Answers whether it is the newest there is; is tried until it does not throw, one try after the other. */
  write: () => Promise<boolean>;
  /** For what comes when it is written, and may fail. */
  afterwards: () => Promise<void>;
}

/** Whether what keeps something from being written lasts as long as the process: others may write, and need not wait. */
export function isForGood(error: unknown): boolean {
  return error instanceof LostFileError;
}

/** What has come for an instance, and is kept until it is written. */
export class KeptWrite {
  readonly instanceId: string;
  readonly #writing: Writing;
  readonly #parts: KeptWritesParts;
  readonly #written = Promise.withResolvers<boolean>();
  #isWritten = false;
  #isEnding = false;
  #isGivenUp = false;
  #running: Promise<boolean> | undefined;
  #timer: NodeJS.Timeout | undefined;
  #failure: unknown;
  /** When whoever is told of failures has heard of the last one. */
  #told: Promise<void> | undefined;

  constructor(instanceId: string, writing: Writing, parts: KeptWritesParts) {
    this.instanceId = instanceId;
    this.#writing = writing;
    this.#parts = parts;
  }

  /** What has kept it from being written. */
  get failure(): unknown {
    return this.#failure;
  }

  /** Resolves when it is written: whether it is the newest. */
  get written(): Promise<boolean> {
    return this.#written.promise;
  }

  /**
   * Tries to write it, unless it is written; whoever asks meanwhile shares the try.
   *
   * @returns whether it is the newest
   * @throws whatever keeps it from being written: it is tried on by itself
   */
  async attempt(): Promise<boolean> {
    try {
      return await this.#tryOnce();
    } catch (error) {
      await this.#told;
      throw error;
    }
  }

  /**
   * Waits until it is written.
   *
   * @param patienceMs how long, in milliseconds
   * @throws whatever has kept it from that until then
   */
  async within(patienceMs: number): Promise<boolean> {
    const over = Symbol('over');
    const first = await Promise.race([this.written, sleep(patienceMs, over, { ref: false })]);
    if (typeof first === 'boolean') return first;
    throw this.#failure;
  }

  /** Has it tried at once, and again and again: the process ends, and nobody is told to wait any more. */
  hurry(): void {
    this.#isEnding = true;
    if (this.#failure !== undefined) void this.#tryOnce().catch(() => undefined);
  }

  /** Has it tried no more. */
  giveUp(): void {
    this.#isGivenUp = true;
    clearTimeout(this.#timer);
  }

  #tryOnce(): Promise<boolean> {
    if (this.#isWritten) return this.written;
    this.#running ??= this.#try().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  async #try(): Promise<boolean> {
    const { onFailure, onUnwritten, onWritten } = this.#parts;
    const { instanceId } = this;
    clearTimeout(this.#timer);
    let isNewest: boolean;
    try {
      isNewest = await this.#writing.write();
    } catch (error) {
      const isFirst = this.#failure === undefined;
      this.#failure = error;
      if (!this.#isGivenUp && !isForGood(error)) {
        if (isFirst) onUnwritten?.({ instanceId, error });
        if (!this.#isEnding) this.#told = onFailure(instanceId).catch(() => undefined);
        const againMs = this.#isEnding ? AGAIN_AT_END_MS : AGAIN_MS;
        // Whoever asked has been told why.
        this.#timer = setTimeout(() => void this.#tryOnce().catch(() => undefined), againMs).unref();
      }
      throw error;
    }
    this.#isWritten = true;
    this.#written.resolve(isNewest);
    if (this.#failure !== undefined) onWritten?.({ instanceId, isNewest });
    await this.#writing.afterwards().catch(() => undefined);
    return isNewest;
  }
}

/**
 * What the token route has granted, until it is written: the service may have ended the refresh token before it. So it is
 * tried at once, and where that fails, this process tries on, until it comes through or the process ends.
 */
export class KeptWrites {
  readonly #parts: KeptWritesParts;
  readonly #unwritten = new Set<KeptWrite>();
  #isEnding = false;

  constructor(parts: KeptWritesParts) {
    this.#parts = parts;
  }

  /** Keeps what is to be written; the first try is the caller's. */
  keep(instanceId: string, writing: Writing): KeptWrite {
    const kept = new KeptWrite(instanceId, writing, this.#parts);
    this.#unwritten.add(kept);
    if (this.#isEnding) kept.hurry();
    void kept.written.then(() => this.#unwritten.delete(kept));
    return kept;
  }

  /** Begins the end of the process: nobody is told to wait any more, as nobody else will write what is left. */
  end(): void {
    this.#isEnding = true;
    for (const kept of this.#unwritten) kept.hurry();
  }

  /**
   * Tries on until each that is left is written, or the time is over: what is kept is lost with the process.
   *
   * @param patienceMs how long, in milliseconds
   * @throws Error when something is lost; `onLost` has been told whose it is
   */
  async close(patienceMs: number): Promise<void> {
    this.end();
    const tried = [...this.#unwritten].filter(({ failure }) => !isForGood(failure));
    const areWritten = Promise.all(tried.map(({ written }) => written));
    await Promise.race([areWritten, sleep(patienceMs, undefined, { ref: false })]);
    const lost = [...this.#unwritten];
    this.#unwritten.clear();
    for (const kept of lost) {
      kept.giveUp();
      this.#parts.onLost?.({ instanceId: kept.instanceId, error: kept.failure ?? new Error(STILL_TRIED) });
    }
    if (lost.length > 0) throw new Error('What the service has granted could not be written.');
  }
}
