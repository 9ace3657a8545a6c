/** A token that is rejected so soon after it was accepted first was of no use where it was rejected, in milliseconds. */
const AT_ONCE_MS = 2_000;

interface Seen {
  accessToken: string;
  /** On the steady clock: when it was accepted first, and last, and when it was rejected first. */
  first?: number;
  last?: number;
  rejected?: number;
}

/** How long the service has accepted the access token of each instance, as far as this process has seen it. */
export class AcceptedTokens {
  readonly #steadyNow: () => number;
  readonly #seen = new Map<string, Seen>();

  /** @param steadyNow a clock that nobody sets, in milliseconds since any moment */
  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  /** Notes that a request with it was not rejected. */
  note(instanceId: string, accessToken: string): void {
    const seen = this.#of(instanceId, accessToken);
    seen.last = this.#steadyNow();
    seen.first ??= seen.last;
  }

  /** Notes that a request with it was. */
  noteRejected(instanceId: string, accessToken: string): void {
    this.#of(instanceId, accessToken).rejected ??= this.#steadyNow();
  }

  /**
   * For how long it was of use to whom it is rejected: one route may do that at once, and others take it all the same.
   *
   * @returns milliseconds; undefined when it never was
   */
  lasted(instanceId: string, accessToken: string): number | undefined {
    const seen = this.#seen.get(instanceId);
    if (seen?.accessToken !== accessToken || seen.first === undefined) return undefined;
    const { first, last = first, rejected = last } = seen;
    return rejected - first < AT_ONCE_MS ? undefined : last - first;
  }

  #of(instanceId: string, accessToken: string): Seen {
    const known = this.#seen.get(instanceId);
    if (known?.accessToken === accessToken) return known;
    const seen = { accessToken };
    this.#seen.set(instanceId, seen);
    return seen;
  }
}
