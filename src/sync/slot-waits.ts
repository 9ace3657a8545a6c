import type { RunKey } from '../store/runs.ts';

/** A wait whose end has passed by so much was ended in another process, in milliseconds. */
const FORGOTTEN_MS = 60_000;

/**
 * Since when runs wait for a request, over the delays of their jobs, as far as this process knows: for the metrics,
 * so it may be lost with the process.
 */
export class SlotWaits {
  readonly #waits = new Map<string, { askedAt: number; until: number }>();

  /**
   * Notes that a run waits, from its first question on.
   *
   * @param until when it asks again, in milliseconds since 1970, like `now`
   */
  wait(key: RunKey, until: number, now: number): void {
    this.#waits.set(nameOf(key), { askedAt: this.#askedAt(key, now), until });
  }

  /** The run may send a request. @returns how long it has waited for that, in milliseconds */
  end(key: RunKey, now: number): number {
    const askedAt = this.#askedAt(key, now);
    this.#waits.delete(nameOf(key));
    return Math.max(0, now - askedAt);
  }

  #askedAt(key: RunKey, now: number): number {
    const wait = this.#waits.get(nameOf(key));
    return wait === undefined || now > wait.until + FORGOTTEN_MS ? now : wait.askedAt;
  }
}

function nameOf({ instanceId, resource }: RunKey): string {
  return `${instanceId} ${resource}`;
}
