/** A map that forgets its oldest entries when it grows over a size, so that a sandbox can run for weeks. */
export class BoundedMap<K, V> extends Map<K, V> {
  readonly #capacity: number;

  constructor(capacity: number, entries: Iterable<[K, V]> = []) {
    super();
    this.#capacity = capacity;
    for (const [key, value] of entries) this.set(key, value);
  }

  override set(key: K, value: V): this {
    super.set(key, value);
    if (this.size > this.#capacity) {
      const oldest = this.keys().next();
      if (!oldest.done) this.delete(oldest.value);
    }
    return this;
  }
}
