interface Accepted {
  accessToken: string;
  /** On the steady clock: when it was accepted first, and last. */
  first: number;
  last: number;
}

/** How long the service has accepted the access token of each instance, as far as this process has seen it. */
export class AcceptedTokens {
  readonly #steadyNow: () => number;
  readonly #accepted = new Map<string, Accepted>();

  /** @param steadyNow a clock that nobody sets, in milliseconds since any moment */
  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  /** Notes that a request with it was not rejected. */
  note(instanceId: string, accessToken: string): void {
    const now = this.#steadyNow();
    const known = this.#accepted.get(instanceId);
    if (known?.accessToken === accessToken) known.last = now;
    else this.#accepted.set(instanceId, { accessToken, first: now, last: now });
  }

  /** @returns milliseconds; undefined when it never was */
  lasted(instanceId: string, accessToken: string): number | undefined {
    const known = this.#accepted.get(instanceId);
    return known?.accessToken === accessToken ? known.last - known.first : undefined;
  }
}
