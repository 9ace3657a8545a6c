/** What is told at the earliest after the first time, in milliseconds. */
const SHORTEST_TOLD_MS = 1_000;

/** When a token was accepted first, and last, on the steady clock; and what of that the other processes have been told. */
interface Span {
  first: number;
  last: number;
  toldMs: number;
}

/** Which access token of an instance, by the version that it was read with, and what it is used for. */
export interface TokenUse {
  instanceId: string;
  version: number;
  use: string;
}

/** Where the processes tell each other, and may forget. */
export interface ToldUses {
  tellUse(of: TokenUse, lastedMs: number): Promise<void>;
  toldUse(of: TokenUse): Promise<number | undefined>;
}

/**
 * How long the service has accepted the access token of each instance. One process may use it, and the next be told that it
 * is over: so they tell each other, when it is first accepted, and each time that it has lasted twice as long.
 */
export class AcceptedTokens {
  readonly #steadyNow: () => number;
  readonly #told: ToldUses;
  readonly #accepted = new Map<string, { version: number; uses: Map<string, Span> }>();

  /** @param steadyNow a clock that nobody sets, in milliseconds since any moment */
  constructor(steadyNow: () => number, told: ToldUses) {
    this.#steadyNow = steadyNow;
    this.#told = told;
  }

  /** Notes that a request was not rejected. */
  note(of: TokenUse): void {
    const { instanceId, version, use } = of;
    const now = this.#steadyNow();
    let known = this.#accepted.get(instanceId);
    if (known?.version !== version) {
      known = { version, uses: new Map() };
      this.#accepted.set(instanceId, known);
    }
    let span = known.uses.get(use);
    if (span === undefined) {
      span = { first: now, last: now, toldMs: -1 };
      known.uses.set(use, span);
    }
    span.last = now;
    const lastedMs = now - span.first;
    if (span.toldMs >= 0 && lastedMs < Math.max(SHORTEST_TOLD_MS, 2 * span.toldMs)) return;
    span.toldMs = lastedMs;
    void this.#told.tellUse(of, lastedMs).catch(() => undefined);
  }

  /**
   * For how long it was of use, of which others may know more.
   *
   * @param of for which it is rejected now: other uses may be served with it all the same
   * @returns milliseconds; undefined when it never was, as far as is known
   */
  async lasted(of: TokenUse): Promise<number | undefined> {
    const { instanceId, version, use } = of;
    const known = this.#accepted.get(instanceId);
    const span = known?.version === version ? known.uses.get(use) : undefined;
    const toldMs = await this.#told.toldUse(of).catch(() => undefined);
    if (span === undefined) return toldMs;
    return Math.max(span.last - span.first, toldMs ?? 0);
  }
}
