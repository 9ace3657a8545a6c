/** How soon a grant that could not be written is tried again, in milliseconds. */
const AGAIN_MS = 2_000;

/** What a refresh has brought, and of which version the tokens were that it was asked for with. */
interface Received {
  readVersion: number;
}

/**
 * Grants that have come and could not be written yet. The service may have ended the refresh token before each: so this
 * process writes them as soon as that is possible, whether or not anybody asks for a token.
 */
export class UnwrittenGrants<Kept extends Received> {
  readonly #write: (instanceId: string, readVersion: number) => Promise<unknown>;
  readonly #kept = new Map<string, Kept>();
  readonly #timers = new Map<string, NodeJS.Timeout>();

  /** @param write tries to write what is kept of an instance; there is nothing to do where its tokens are others by now */
  constructor(write: (instanceId: string, readVersion: number) => Promise<unknown>) {
    this.#write = write;
  }

  /** @returns what is kept of an instance, if its tokens are still those of then */
  find(instanceId: string, version: number): Kept | undefined {
    const kept = this.#kept.get(instanceId);
    return kept?.readVersion === version ? kept : undefined;
  }

  keep(instanceId: string, received: Kept): void {
    this.#kept.set(instanceId, received);
  }

  /** It could not be written just now. */
  tryOn(instanceId: string): void {
    clearTimeout(this.#timers.get(instanceId));
    this.#timers.set(instanceId, setTimeout(() => void this.#tryNow(instanceId), AGAIN_MS).unref());
  }

  /** @returns whether it had been tried in vain before */
  forget(instanceId: string): boolean {
    this.#kept.delete(instanceId);
    clearTimeout(this.#timers.get(instanceId));
    return this.#timers.delete(instanceId);
  }

  /** Tries each a last time: what is kept is lost with the process. */
  async close(): Promise<void> {
    await Promise.all([...this.#kept.keys()].map((id) => this.#tryNow(id)));
    for (const timer of this.#timers.values()) clearTimeout(timer);
  }

  async #tryNow(instanceId: string): Promise<void> {
    const kept = this.#kept.get(instanceId);
    if (kept === undefined) return;
    try {
      await this.#write(instanceId, kept.readVersion);
      // Others may have written a newer grant, which is as good.
      if (this.#kept.get(instanceId) === kept) this.forget(instanceId);
    } catch {
      // Whoever asked for the grant was told why.
      if (this.#kept.get(instanceId) === kept) this.tryOn(instanceId);
    }
  }
}
