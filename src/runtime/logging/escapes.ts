const QUOTE = 0x22;
const HASH = 0x23;
const PERCENT = 0x25;
const AMPERSAND = 0x26;
const APOSTROPHE = 0x27;
const SLASH = 0x2f;
const SEMICOLON = 0x3b;
const BACKSLASH = 0x5c;
const SMALL_U = 0x75;
const SMALL_X = 0x78;

/** What a letter behind a backslash stands for in JSON. */
const CONTROL: Record<number, number> = { 98: 8, 102: 12, 110: 10, 114: 13, 116: 9 };

/** The entities of HTML that an escape writes, without their ampersand. */
const ENTITIES = (
  [
    ['amp;', AMPERSAND],
    ['lt;', 0x3c],
    ['gt;', 0x3e],
    ['quot;', QUOTE],
    ['apos;', APOSTROPHE],
  ] as const
).map(([name, code]) => ({ name: [...name].map((letter) => letter.charCodeAt(0)), code }));

/** Digits of a numeric entity that are read, leading zeros included. */
const MOST_ENTITY_DIGITS = 8;

/** The longest escape of a backslash, in UTF-16 units: `\u0041`. */
const LONGEST_BACKSLASH_ESCAPE = 6;

/** What an escape stands for, and how long it is, in UTF-16 units. */
interface Escape {
  code: number;
  length: number;
}

/** The value of a hexadecimal digit, or -1. */
export function hexDigit(code: number | undefined): number {
  if (code === undefined) return -1;
  if (code >= 0x30 && code <= 0x39) return code - 0x30;
  const letter = code | 0x20;
  return letter >= 0x61 && letter <= 0x66 ? letter - 0x57 : -1;
}

/** The escape that begins at a place: of an address, of JSON or of HTML. */
export function escapeAt(codes: Uint16Array, at: number): Escape | undefined {
  const code = codes[at];
  if (code === PERCENT) return hexadecimal(codes, at + 1, 2, 3);
  if (code === BACKSLASH) return backslashEscape(codes, at);
  if (code === AMPERSAND) return codes[at + 1] === HASH ? numericEntity(codes, at) : namedEntity(codes, at);
  return undefined;
}

/** Where an escape of a backslash begins and ends that a place lies inside of; else the place itself, twice. */
export function escapeAround(codes: Uint16Array, at: number): [from: number, to: number] {
  let last = at - 1;
  while (last >= 0 && last > at - LONGEST_BACKSLASH_ESCAPE && codes[last] !== BACKSLASH) last--;
  if (codes[last] !== BACKSLASH) return [at, at];
  let first = last;
  while (codes[first - 1] === BACKSLASH) first--;
  // Backslashes in pairs stand for themselves.
  const begins = (last - first) % 2 === 0;
  const to = begins ? last + (escapeAt(codes, last)?.length ?? 0) : 0;
  return to > at ? [last, to] : [at, at];
}

function hexadecimal(codes: Uint16Array, from: number, digits: number, length: number): Escape | undefined {
  let code = 0;
  for (let at = from; at < from + digits; at++) {
    const digit = hexDigit(codes[at]);
    if (digit === -1) return undefined;
    code = code * 16 + digit;
  }
  return { code, length };
}

function backslashEscape(codes: Uint16Array, at: number): Escape | undefined {
  const letter = codes[at + 1];
  if (letter === undefined) return undefined;
  if (letter === SMALL_U) return hexadecimal(codes, at + 2, 4, 6);
  if (letter === SMALL_X) return hexadecimal(codes, at + 2, 2, 4);
  if ([BACKSLASH, QUOTE, SLASH, APOSTROPHE].includes(letter)) return { code: letter, length: 2 };
  const control = CONTROL[letter];
  return control === undefined ? undefined : { code: control, length: 2 };
}

function numericEntity(codes: Uint16Array, at: number): Escape | undefined {
  const isHex = ((codes[at + 2] ?? 0) | 0x20) === SMALL_X;
  const base = isHex ? 16 : 10;
  const from = at + (isHex ? 3 : 2);
  let code = 0;
  let end = from;
  for (; end < from + MOST_ENTITY_DIGITS; end++) {
    const digit = hexDigit(codes[end]);
    if (digit === -1 || digit >= base) break;
    code = code * base + digit;
  }
  if (end === from) return undefined;
  return { code, length: (codes[end] === SEMICOLON ? end + 1 : end) - at };
}

function namedEntity(codes: Uint16Array, at: number): Escape | undefined {
  for (const { name, code } of ENTITIES) {
    if (name.every((letter, index) => codes[at + 1 + index] === letter)) {
      return { code, length: name.length + 1 };
    }
  }
  return undefined;
}
