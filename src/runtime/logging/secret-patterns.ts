import { unescapedLayers } from './readings.ts';

/** By so many characters in a row a piece of a secret is found; how far it goes is compared then. */
export const WINDOW = 12;

/** So many characters of a secret further on another window begins, or earlier in short ones. */
const STEP = 8;

/** A piece of so many characters holds a window wherever it begins; of long secrets, longer ones. */
export const FOUND_PIECE = WINDOW + STEP - 1;

/** Of long secrets so many windows are looked for, further apart. */
const MOST_WINDOWS = 32;

/** Windows are told apart by a polynomial in this, modulo 2³², which moves on by one character in one step. */
const BASE = 0x01000193;
const BASE_TO_WINDOW = Array(WINDOW).fill(BASE).reduce(Math.imul, 1);

const SPACE = 0x20;
const PLUS = 0x2b;

/** Forms write a space as `+`: they count as the same. */
export function folded(code = 0): number {
  return code === SPACE ? PLUS : code;
}

/** The UTF-16 units of a text. */
export function codesOf(text: string): Uint16Array {
  const codes = new Uint16Array(text.length);
  for (let at = 0; at < codes.length; at++) codes[at] = text.charCodeAt(at);
  return codes;
}

/** The hash of the window that ends with a place, from that of the one before; of fewer characters at the beginning. */
export function rolled(hash: number, codes: Uint16Array, last: number): number {
  const added = (Math.imul(hash, BASE) + folded(codes[last])) | 0;
  return last < WINDOW ? added : (added - Math.imul(folded(codes[last - WINDOW]), BASE_TO_WINDOW)) | 0;
}

/** What of a secret is looked for: itself and its bytes, and both without what would be undone of a text as an escape. */
export function patternsOf(secret: string): Uint16Array[] {
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
export function windowsOf(pattern: Uint16Array): Map<number, number> {
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
