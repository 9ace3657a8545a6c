import { escapeAround } from './escapes.ts';
import { readings } from './readings.ts';
import { REDACTED } from './secret-names.ts';
import { codesOf, FOUND_PIECE, folded, patternsOf, rolled, WINDOW, windowsOf } from './secret-patterns.ts';

/** Shorter ones are no secrets that a machine made, and would blank plain words, in characters. */
const SHORTEST = 12;

/** Secrets that are kept at most, besides those of the configuration; the one that was used least lately makes room. */
const MOST_SECRETS = 5_000;

/** What all of those may take, in bytes: as many tokens of usual length take a quarter of it. */
const MOST_BYTES = 32 * 1024 * 1024;

/** About what it takes to remember one window, in bytes. */
const WINDOW_BYTES = 200;

/** Of secrets that have a window in common, so many are compared; each has windows of its own besides. */
const MOST_COMPARED = 4;

/** With so many characters of a secret left to guess (128 bits in Base64), the rest of it tells nobody the whole. */
const SAFE_REST = 22;

const SLOT_BITS = 18;

/** A window of a secret. */
interface Place {
  pattern: Uint16Array;
  at: number;
}

/** Part of a text, from a place to behind another. */
type Range = [from: number, to: number];

/** How much is remembered. */
export interface MemoryLimits {
  /** Instead of {@link MOST_SECRETS}. */
  most?: number;
  /** Instead of {@link MOST_BYTES}; the newest secret is kept, however long it is. */
  mostBytes?: number;
  /** Windows fall into 2 to the power of this many slots, two bytes each: fewer do for a few secrets. */
  slotBits?: number;
}

/**
 * The secrets that this process has had in its hands, so that texts that come from elsewhere (a message of the service,
 * an error of the handler) and repeat one, or a piece of one, can be told, whatever they look like.
 */
export class KnownSecrets {
  readonly #most: number;
  readonly #mostBytes: number;
  readonly #slotShift: number;
  readonly #pinned = new Set<string>();
  readonly #patternsOf = new Map<string, Uint16Array[]>();
  #bytes = 0;
  readonly #places = new Map<number, Place[]>();
  /** How many windows fall into a slot: most places of a text are passed over by this alone. */
  readonly #slots: Uint16Array;

  constructor({ most = MOST_SECRETS, mostBytes = MOST_BYTES, slotBits = SLOT_BITS }: MemoryLimits = {}) {
    this.#most = most;
    this.#mostBytes = mostBytes;
    this.#slotShift = 32 - slotBits;
    this.#slots = new Uint16Array(2 ** slotBits);
  }

  /** Remembers a secret, until others have come since it was added last. */
  add(secret: string): void {
    if (secret.length < SHORTEST || this.#pinned.has(secret)) return;
    const known = this.#patternsOf.get(secret);
    if (known !== undefined) {
      this.#patternsOf.delete(secret);
      this.#patternsOf.set(secret, known);
      return;
    }
    const patterns = patternsOf(secret);
    this.#patternsOf.set(secret, patterns);
    this.#bytes += bytesOf(patterns);
    for (const pattern of patterns) this.#remember(pattern);
    while (
      this.#patternsOf.size > this.#most ||
      (this.#bytes > this.#mostBytes && this.#patternsOf.size > 1)
    ) {
      this.#forgetOldest();
    }
  }

  /** Remembers a secret for good, such as one of the configuration. */
  pin(secret: string): void {
    if (secret.length < SHORTEST || this.#pinned.has(secret)) return;
    this.#forget(secret);
    this.#pinned.add(secret);
    for (const pattern of patternsOf(secret)) this.#remember(pattern);
  }

  /**
   * The text with every known secret left out, and every piece of one that holds a window: as it is, escaped, encoded.
   * That is any piece of 19 characters, and a beginning or an end of 12; of secrets of more than 270 characters, longer
   * ones.
   */
  hide(text: string): string {
    if (text.length < WINDOW || this.#places.size === 0) return text;
    const codes = codesOf(text);
    const ranges: Range[] = [];
    for (const { codes: read, from, to } of readings(codes)) {
      let foundTo = 0;
      this.#search(read, (at, hash) => {
        const piece = this.#pieceAt(read, at, hash, foundTo);
        if (piece === undefined) return 0;
        ranges.push([from(piece[0]), to(piece[1] - 1)]);
        foundTo = piece[1];
        // What lies within a piece that was found already tells nothing new.
        return foundTo;
      });
    }
    if (ranges.length === 0) return text;
    let out = '';
    let copiedTo = 0;
    for (const [from, to] of joined(ranges.map(([from, to]) => withWholeEscapes(codes, from, to)))) {
      out += text.slice(copiedTo, from) + REDACTED;
      copiedTo = to;
    }
    return out + text.slice(copiedTo);
  }

  /**
   * Whether a text gives a known secret away, as it is, escaped or encoded: holds it whole, or so much of it that the
   * rest could be guessed. What it may well have in common with a secret, such as the head of a signed token, or a
   * company's id in front of the random part, does not count.
   */
  givesAway(text: string): boolean {
    if (text.length < WINDOW || this.#places.size === 0) return false;
    for (const { codes } of readings(codesOf(text))) {
      let isFound = false;
      this.#search(codes, (at, hash) => {
        isFound = this.#placesOf(hash).some(({ pattern, at: place }) => {
          const [from, to] = extent(codes, at, { pattern, at: place }, 0);
          const length = to - from;
          const rest = pattern.length - length;
          return rest === 0 || (length >= FOUND_PIECE && rest < SAFE_REST);
        });
        return isFound ? codes.length : 0;
      });
      if (isFound) return true;
    }
    return false;
  }

  /**
   * Goes through the places of a text where a window of a secret may begin.
   *
   * @param visit answers where those windows end that are of interest from there on
   */
  #search(codes: Uint16Array, visit: (at: number, hash: number) => number): void {
    let hash = 0;
    let passTo = 0;
    for (let last = 0; last < codes.length; last++) {
      hash = rolled(hash, codes, last);
      if (last < WINDOW - 1 || last < passTo || this.#slots[this.#slotOf(hash)] === 0) continue;
      passTo = Math.max(passTo, visit(last - WINDOW + 1, hash));
    }
  }

  /** How far the text goes on as a secret does, to both sides of a window; to the left not into what was found before. */
  #pieceAt(codes: Uint16Array, at: number, hash: number, leftmost: number): Range | undefined {
    let piece: Range | undefined;
    for (const place of this.#placesOf(hash)) {
      const [from, to] = extent(codes, at, place, leftmost);
      if (to < at + WINDOW) continue;
      piece = piece === undefined ? [from, to] : [Math.min(piece[0], from), Math.max(piece[1], to)];
    }
    return piece;
  }

  #placesOf(hash: number): Place[] {
    return this.#places.get(hash)?.slice(0, MOST_COMPARED) ?? [];
  }

  #slotOf(hash: number): number {
    return Math.imul(hash, 0x9e3779b1) >>> this.#slotShift;
  }

  #remember(pattern: Uint16Array): void {
    for (const [hash, at] of windowsOf(pattern)) {
      const slot = this.#slotOf(hash);
      this.#slots[slot] = (this.#slots[slot] ?? 0) + 1;
      const places = this.#places.get(hash);
      if (places === undefined) this.#places.set(hash, [{ pattern, at }]);
      else places.push({ pattern, at });
    }
  }

  #forgetOldest(): void {
    const [oldest] = this.#patternsOf.keys();
    if (oldest !== undefined) this.#forget(oldest);
  }

  #forget(secret: string): void {
    const patterns = this.#patternsOf.get(secret);
    if (patterns === undefined) return;
    this.#patternsOf.delete(secret);
    this.#bytes -= bytesOf(patterns);
    for (const pattern of patterns) {
      for (const hash of windowsOf(pattern).keys()) {
        const slot = this.#slotOf(hash);
        this.#slots[slot] = (this.#slots[slot] ?? 0) - 1;
        const places = this.#places.get(hash) ?? [];
        places.splice(
          places.findIndex((place) => place.pattern === pattern),
          1,
        );
        if (places.length === 0) this.#places.delete(hash);
      }
    }
  }
}

/** About what it takes to remember a secret. */
function bytesOf(patterns: readonly Uint16Array[]): number {
  return patterns.reduce(
    (sum, pattern) => sum + pattern.byteLength + windowsOf(pattern).size * WINDOW_BYTES,
    0,
  );
}

/** How far a text is the same as a secret from a window on, to both sides; nothing, when the window is another. */
function extent(codes: Uint16Array, at: number, { pattern, at: place }: Place, leftmost: number): Range {
  const offset = place - at;
  const isSame = (index: number) => folded(codes[index]) === pattern[index + offset];
  let to = at;
  while (to < codes.length && isSame(to)) to++;
  if (to < at + WINDOW) return [at, at];
  let from = at;
  while (from > leftmost && isSame(from - 1)) from--;
  return [from, to];
}

/** In a text that quotes JSON, half an escape would spoil what is quoted. */
function withWholeEscapes(codes: Uint16Array, from: number, to: number): Range {
  return [escapeAround(codes, from)[0], escapeAround(codes, to)[1]];
}

/** In their order, those that overlap as one. */
function joined(ranges: Range[]): Range[] {
  const out: Range[] = [];
  for (const [from, to] of ranges.sort((one, other) => one[0] - other[0])) {
    const before = out.at(-1);
    if (before === undefined || from >= before[1]) out.push([from, to]);
    else before[1] = Math.max(before[1], to);
  }
  return out;
}

/** Those of this process: there is one log, and one memory. */
export const knownSecrets = new KnownSecrets();
