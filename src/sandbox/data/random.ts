/**
 * Mixes a 32-bit number so that neighbours look unrelated. A bijection (the "lowbias32" integer hash):
 * {@link unmix32} leads back, which is how an id finds its record without an index in memory.
 */
export function mix32(value: number): number {
  let x = value;
  x ^= x >>> 16;
  x = Math.imul(x, 0x7feb352d);
  x ^= x >>> 15;
  x = Math.imul(x, 0x846ca68b);
  x ^= x >>> 16;
  return x >>> 0;
}

/** Undoes {@link mix32}. */
export function unmix32(value: number): number {
  let x = value;
  x ^= x >>> 16;
  x = Math.imul(x, 0x43021123);
  x ^= (x >>> 15) ^ (x >>> 30);
  x = Math.imul(x, 0x1d69e2a5);
  x ^= x >>> 16;
  return x >>> 0;
}

/** A small generator of pseudo-random numbers ("mulberry32"): the same seed always gives the same series. */
export class Random {
  #state: number;

  /** @param seed any number; its lower 32 bits count */
  constructor(seed: number) {
    this.#state = seed | 0;
  }

  /** A whole number from 0 to `below` - 1; `below` is at most 2^32. */
  int(below: number): number {
    this.#state = (this.#state + 0x6d2b79f5) | 0;
    let x = this.#state;
    x = Math.imul(x ^ (x >>> 15), x | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return Math.floor((((x ^ (x >>> 14)) >>> 0) / 0x1_0000_0000) * below);
  }

  /** True in `percent` of a hundred calls. */
  chance(percent: number): boolean {
    return this.int(100) < percent;
  }

  /** One of the items. Throws a RangeError when there is none. */
  pick<T>(items: readonly T[]): T {
    const item = items[this.int(items.length)];
    if (item === undefined) throw new RangeError('nothing to pick from');
    return item;
  }
}

/** A seed for one thing of a kind: the same three numbers always give the same one. */
export function seedOf(seed: number, kind: number, index: number): number {
  return mix32(mix32(seed ^ Math.imul(kind, 0x9e3779b1)) ^ index);
}

/** A 32-bit number that stands for a short text. */
export function hashText(text: string): number {
  let hash = 0;
  for (const character of text) hash = mix32(hash ^ (character.codePointAt(0) ?? 0));
  return hash;
}
