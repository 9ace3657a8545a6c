/** On the steady clock: when a token was accepted first, and last. */
interface Span {
  first: number;
  last: number;
}

/** How long the service has accepted the access token of each instance, as far as this process has seen it. */
export class AcceptedTokens {
  readonly #steadyNow: () => number;
  readonly #accepted = new Map<string, { accessToken: string; uses: Map<string, Span> }>();

  /** @param steadyNow a clock that nobody sets, in milliseconds since any moment */
  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  /** Notes that a request for this use was not rejected. */
  note(instanceId: string, accessToken: string, use: string): void {
    const now = this.#steadyNow();
    let known = this.#accepted.get(instanceId);
    if (known?.accessToken !== accessToken) {
      known = { accessToken, uses: new Map() };
      this.#accepted.set(instanceId, known);
    }
    const span = known.uses.get(use);
    if (span === undefined) known.uses.set(use, { first: now, last: now });
    else span.last = now;
  }

  /**
   * For how long it was of use.
   *
   * @param use for which it is rejected now: others may be served with it all the same
   * @returns milliseconds; undefined when it never was
   */
  lasted(instanceId: string, accessToken: string, use: string): number | undefined {
    const known = this.#accepted.get(instanceId);
    if (known?.accessToken !== accessToken) return undefined;
    const span = known.uses.get(use);
    return span === undefined ? undefined : span.last - span.first;
  }
}
