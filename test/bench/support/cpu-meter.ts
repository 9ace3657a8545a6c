import { usageOf } from './process-usage.ts';

/** Adds up what processes use of a processor while they are watched, also of those that end on the way. */
export class CpuMeter {
  #spentMs = 0;
  readonly #startedMs = new Map<number, number>();

  /** From now on what this process uses counts. */
  watch(pid: number): void {
    this.#startedMs.set(pid, usageOf(pid)?.cpuMs ?? 0);
  }

  /** Takes over what it has used; to be called before it is ended. */
  leave(pid: number): void {
    this.#spentMs += this.#usedBy(pid);
    this.#startedMs.delete(pid);
  }

  /** Milliseconds so far. */
  get spentMs(): number {
    let spent = this.#spentMs;
    for (const pid of this.#startedMs.keys()) spent += this.#usedBy(pid);
    return spent;
  }

  #usedBy(pid: number): number {
    const startedMs = this.#startedMs.get(pid);
    const used = usageOf(pid)?.cpuMs;
    return startedMs === undefined || used === undefined ? 0 : used - startedMs;
  }
}
