import { escapeAt, hexDigit } from './escapes.ts';

/** Escapes within escapes that are undone: a line of the log is JSON, and may quote JSON that quotes an address. */
const MOST_LAYERS = 4;

/** Base64 within Base64, or hexadecimal within that, that is read. */
const MOST_WRAPS = 2;

/** Shorter runs hold no piece of a secret that is looked for, in digits: twelve bytes. */
const SHORTEST_BASE64 = 16;
const SHORTEST_HEX = 24;

/** What may stand between two hexadecimal digits: ` `, `-`, `:`. */
const SEPARATORS = new Set([0x20, 0x2d, 0x3a]);

const BASE64_DIGITS = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/';
const BASE64_VALUES = new Int8Array(128).fill(-1);
for (const [value, digit] of [...BASE64_DIGITS].entries()) BASE64_VALUES[digit.charCodeAt(0)] = value;
// The alphabet for addresses.
BASE64_VALUES['-'.charCodeAt(0)] = 62;
BASE64_VALUES['_'.charCodeAt(0)] = 63;

/** One way to read a text, and where in the text as it came its units stand. */
export interface Reading {
  /** UTF-16 units; bytes, where Base64, hexadecimal digits or percent signs were read. */
  codes: Uint16Array;
  /** Where a unit begins. */
  from(index: number): number;
  /** Behind its end. */
  to(index: number): number;
}

/**
 * A text in every way in which it may hold another one: as it is, without its escapes, and what its runs of Base64 and
 * hexadecimal digits stand for. Time and memory grow with the length of the text, whatever stands there.
 */
export function readings(codes: Uint16Array): Generator<Reading> {
  return readingsOf({ codes, from: (index) => index, to: (index) => index + 1 }, MOST_WRAPS);
}

/** The same text without its escapes, a layer at a time. */
export function* unescapedLayers(reading: Reading): Generator<Reading> {
  let outer = reading;
  for (let layer = 0; layer < MOST_LAYERS; layer++) {
    const inner = unescaped(outer);
    if (inner === undefined) return;
    yield inner;
    outer = inner;
  }
}

function* readingsOf(reading: Reading, wraps: number): Generator<Reading> {
  yield reading;
  let innermost = reading;
  for (const inner of unescapedLayers(reading)) {
    yield inner;
    innermost = inner;
  }
  if (wraps === 0) return;
  // Digits may be escaped, and may be taken for part of an escape that ends in front of them.
  for (const outer of new Set([reading, innermost])) {
    for (const decoded of decodedRuns(outer)) yield* readingsOf(decoded, wraps - 1);
  }
}

function* decodedRuns(reading: Reading): Generator<Reading> {
  for (const digits of hexRuns(reading.codes)) {
    for (const shift of [0, 1]) yield fromHex(reading, digits, shift);
  }
  for (const [from, to] of base64Runs(reading.codes)) {
    // A part of it may begin at any of the four digits that make three bytes.
    for (const shift of [0, 1, 2, 3]) yield fromBase64(reading, from + shift, to);
  }
}

function unescaped({ codes, from, to }: Reading): Reading | undefined {
  let at = 0;
  while (at < codes.length && escapeAt(codes, at) === undefined) at++;
  if (at === codes.length) return undefined;
  const inner = codes.slice();
  const starts = new Uint32Array(codes.length + 1);
  for (let index = 0; index < at; index++) starts[index] = index;
  let length = at;
  for (; at < codes.length; length++) {
    starts[length] = at;
    const found = escapeAt(codes, at);
    inner[length] = found?.code ?? codes[at] ?? 0;
    at += found?.length ?? 1;
  }
  starts[length] = codes.length;
  return {
    codes: inner.subarray(0, length),
    from: (index) => from(starts[index] ?? 0),
    to: (index) => to((starts[index + 1] ?? 0) - 1),
  };
}

/** Places of the digits of every long run. */
function* hexRuns(codes: Uint16Array): Generator<number[]> {
  for (let at = 0; at < codes.length; at++) {
    const from = at;
    while (isHexOrBetween(codes, at)) at++;
    if (at - from < SHORTEST_HEX) continue;
    const digits: number[] = [];
    for (let index = from; index < at; index++) if (hexDigit(codes[index]) !== -1) digits.push(index);
    if (digits.length >= SHORTEST_HEX) yield digits;
  }
}

function isHexOrBetween(codes: Uint16Array, at: number): boolean {
  if (hexDigit(codes[at]) !== -1) return true;
  return SEPARATORS.has(codes[at] ?? 0) && hexDigit(codes[at - 1]) !== -1 && hexDigit(codes[at + 1]) !== -1;
}

function fromHex({ codes, from, to }: Reading, digits: readonly number[], shift: number): Reading {
  const place = (index: number): number => digits[index] ?? 0;
  const bytes = new Uint16Array(Math.floor((digits.length - shift) / 2));
  for (let index = 0; index < bytes.length; index++) {
    const high = place(shift + 2 * index);
    const low = place(shift + 2 * index + 1);
    bytes[index] = hexDigit(codes[high]) * 16 + hexDigit(codes[low]);
  }
  return {
    codes: bytes,
    from: (index) => from(place(shift + 2 * index)),
    to: (index) => to(place(shift + 2 * index + 1)),
  };
}

function base64Value(code: number | undefined): number {
  return BASE64_VALUES[code ?? 0xffff] ?? -1;
}

/** Where every long run begins, and behind its end. */
function* base64Runs(codes: Uint16Array): Generator<[from: number, to: number]> {
  for (let at = 0; at < codes.length; at++) {
    const from = at;
    while (base64Value(codes[at]) !== -1) at++;
    if (at - from >= SHORTEST_BASE64) yield [from, at];
  }
}

function fromBase64({ codes, from, to }: Reading, first: number, end: number): Reading {
  const bytes = new Uint16Array(Math.floor(((end - first) * 6) / 8));
  let bits = 0;
  let held = 0;
  let length = 0;
  for (let at = first; at < end; at++) {
    held = ((held << 6) | base64Value(codes[at])) & 0xffff;
    bits += 6;
    if (bits < 8) continue;
    bits -= 8;
    bytes[length++] = (held >> bits) & 0xff;
  }
  return {
    codes: bytes,
    from: (index) => from(first + Math.floor((index * 8) / 6)),
    to: (index) => to(first + Math.ceil(((index + 1) * 8) / 6) - 1),
  };
}
