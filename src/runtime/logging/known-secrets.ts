import { escapeAround } from './escapes.ts';
import { type Reading, readings, unescapedLayers } from './readings.ts';
import { REDACTED } from './secret-names.ts';

/** Shorter ones are no secrets that a machine made, and would blank plain words, in characters. */
const SHORTEST = 12;

/** By so many characters in a row a piece of a secret is found; how far it goes is compared then. */
const WINDOW = 12;

/** So many characters of a secret further on another window begins, or earlier in short ones. */
const STEP = 8;

/** Of long secrets so many windows are looked for, further apart. */
const MOST_WINDOWS = 32;

/** Secrets that are kept at most; the one that was used least lately makes room. */
const MOST_SECRETS = 5_000;

/** Of secrets that have a window in common, so many are compared; each has windows of its own besides. */
const MOST_COMPARED = 4;

/** Windows are told apart by a polynomial in this, modulo 2³², which moves on by one character in one step. */
const BASE = 0x01000193;
const BASE_TO_WINDOW = Array(WINDOW).fill(BASE).reduce(Math.imul, 1);
const SLOT_BITS = 18;

const SPACE = 0x20;
const PLUS = 0x2b;

/** A window of a secret. */
interface Place {
  pattern: Uint16Array;
  at: number;
}

/** Part of a text, from a place to behind another. */
type Range = [from: number, to: number];

/**
 * The secrets that this process has had in its hands, so that texts that come from elsewhere (a message of the service,
 * an error of the own logic) and repeat one, or a piece of one, can be told, whatever they look like.
 */
export class KnownSecrets {
  readonly #most: number;
  readonly #patternsOf = new Map<string, Uint16Array[]>();
  readonly #places = new Map<number, Place[]>();
  /** How many windows fall into a slot: most places of a text are passed over by this alone. */
  readonly #slots = new Uint16Array(2 ** SLOT_BITS);

  constructor(most = MOST_SECRETS) {
    this.#most = most;
  }

  /** Remembers a secret; one that is known already counts as used. */
  add(secret: string): void {
    if (secret.length < SHORTEST) return;
    const known = this.#patternsOf.get(secret);
    if (known !== undefined) {
      this.#patternsOf.delete(secret);
      this.#patternsOf.set(secret, known);
      return;
    }
    const patterns = patternsOf(secret);
    this.#patternsOf.set(secret, patterns);
    for (const pattern of patterns) this.#remember(pattern);
    if (this.#patternsOf.size > this.#most) this.#forgetOldest();
  }

  /**
   * The text with every known secret left out, and every piece of one that holds a window: as it is, escaped, encoded.
   * That is any piece of 19 characters, and a beginning or an end of 12; of secrets of more than 270 characters, longer
   * ones.
   */
  hide(text: string): string {
    if (this.#patternsOf.size === 0) return text;
    const codes = codesOf(text);
    const ranges: Range[] = [];
    for (const reading of readings(codes)) this.#search(reading, ranges);
    if (ranges.length === 0) return text;
    let out = '';
    let copiedTo = 0;
    for (const [from, to] of joined(ranges.map(([from, to]) => withWholeEscapes(codes, from, to)))) {
      out += text.slice(copiedTo, from) + REDACTED;
      copiedTo = to;
    }
    return out + text.slice(copiedTo);
  }

  #search({ codes, from, to }: Reading, ranges: Range[]): void {
    let hash = 0;
    let foundTo = 0;
    for (let last = 0; last < codes.length; last++) {
      hash = (Math.imul(hash, BASE) + folded(codes[last])) | 0;
      if (last >= WINDOW) hash = (hash - Math.imul(folded(codes[last - WINDOW]), BASE_TO_WINDOW)) | 0;
      // What lies within a piece that was found already tells nothing new.
      if (last < WINDOW - 1 || last < foundTo || this.#slots[slotOf(hash)] === 0) continue;
      const piece = this.#pieceAt(codes, last - WINDOW + 1, hash, foundTo);
      if (piece === undefined) continue;
      ranges.push([from(piece[0]), to(piece[1] - 1)]);
      foundTo = piece[1];
    }
  }

  /** How far the text goes on as a secret does, to both sides of a window; to the left not into what was found before. */
  #pieceAt(codes: Uint16Array, at: number, hash: number, leftmost: number): Range | undefined {
    let piece: Range | undefined;
    for (const place of this.#places.get(hash)?.slice(0, MOST_COMPARED) ?? []) {
      const offset = place.at - at;
      const isSame = (index: number) => folded(codes[index]) === place.pattern[index + offset];
      let to = at;
      while (to < codes.length && isSame(to)) to++;
      if (to < at + WINDOW) continue;
      let from = at;
      while (from > leftmost && isSame(from - 1)) from--;
      piece = piece === undefined ? [from, to] : [Math.min(piece[0], from), Math.max(piece[1], to)];
    }
    return piece;
  }

  #remember(pattern: Uint16Array): void {
    for (const [hash, at] of windowsOf(pattern)) {
      const slot = slotOf(hash);
      this.#slots[slot] = (this.#slots[slot] ?? 0) + 1;
      const places = this.#places.get(hash);
      if (places === undefined) this.#places.set(hash, [{ pattern, at }]);
      else places.push({ pattern, at });
    }
  }

  #forgetOldest(): void {
    const oldest = this.#patternsOf.entries().next().value;
    if (oldest === undefined) return;
    const [secret, patterns] = oldest;
    this.#patternsOf.delete(secret);
    for (const pattern of patterns) {
      for (const hash of windowsOf(pattern).keys()) {
        const slot = slotOf(hash);
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

function slotOf(hash: number): number {
  return Math.imul(hash, 0x9e3779b1) >>> (32 - SLOT_BITS);
}

/** Forms write a space as `+`: they count as the same. */
function folded(code = 0): number {
  return code === SPACE ? PLUS : code;
}

function codesOf(text: string): Uint16Array {
  const codes = new Uint16Array(text.length);
  for (let at = 0; at < codes.length; at++) codes[at] = text.charCodeAt(at);
  return codes;
}

/** What of a secret is looked for: itself and its bytes, and both without what would be undone of a text as an escape. */
function patternsOf(secret: string): Uint16Array[] {
  const texts = new Set([secret, Buffer.from(secret, 'utf8').toString('latin1')]);
  const patterns = new Map<string, Uint16Array>();
  for (const text of texts) {
    const codes = codesOf(text);
    const plain = { codes, from: (index: number) => index, to: (index: number) => index + 1 };
    for (const layer of [plain, ...unescapedLayers(plain)]) {
      const pattern = layer.codes.map(folded);
      if (pattern.length >= WINDOW) patterns.set(pattern.join(), pattern);
    }
  }
  return [...patterns.values()];
}

/** Where the windows of a pattern begin, by their hash: the first and the last one, and some between them. */
function windowsOf(pattern: Uint16Array): Map<number, number> {
  const last = pattern.length - WINDOW;
  const step = Math.max(Math.min(STEP, Math.ceil(last / 2)), Math.ceil(last / (MOST_WINDOWS - 1)));
  const windows = new Map<number, number>();
  for (let at = 0; ; at = Math.min(at + step, last)) {
    const hash = pattern
      .subarray(at, at + WINDOW)
      .reduce((sum, code) => (Math.imul(sum, BASE) + code) | 0, 0);
    if (!windows.has(hash)) windows.set(hash, at);
    if (at === last) return windows;
  }
}

/** In JSON, half an escape would spoil the whole line. */
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
