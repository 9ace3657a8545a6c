/** On the steady clock: when a token was accepted first, and last. */
interface Span {
  first: number;
  last: number;
}

/** How long the service has accepted the access token of each instance, as far as this process has seen it. */
export class AcceptedTokens {
  readonly #steadyNow: () => number;
  readonly #accepted = new Map<string, { accessToken: string; lists: Map<string, Span> }>();

  /** @param steadyNow a clock that nobody sets, in milliseconds since any moment */
  constructor(steadyNow: () => number) {
    this.#steadyNow = steadyNow;
  }

  /** Notes that a request for a page of this list was not rejected. */
  note(instanceId: string, accessToken: string, list: string): void {
    const now = this.#steadyNow();
    let known = this.#accepted.get(instanceId);
    if (known?.accessToken !== accessToken) {
      known = { accessToken, lists: new Map() };
      this.#accepted.set(instanceId, known);
    }
    const span = known.lists.get(list);
    if (span === undefined) known.lists.set(list, { first: now, last: now });
    else span.last = now;
  }

  /**
   * For how long it was of use.
   *
   * @param list where it is rejected now, if that is one: others may take it all the same
   * @returns milliseconds; undefined when it never was
   */
  lasted(instanceId: string, accessToken: string, list?: string): number | undefined {
    const known = this.#accepted.get(instanceId);
    if (known?.accessToken !== accessToken) return undefined;
    const spans = list === undefined ? [...known.lists.values()] : [known.lists.get(list)];
    const lasted = spans.flatMap((span) => (span === undefined ? [] : [span.last - span.first]));
    return lasted.length === 0 ? undefined : Math.max(...lasted);
  }
}
