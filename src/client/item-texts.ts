const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * The text of each item of a page's top-level `_results`, exactly as it came, but for white space between tokens: large
 * integers, `1.0`, escapes and the order of names survive, which JSON.parse does not keep. One pass over the bytes,
 * without recursion: bytes are all alike, while a string may be kept in one of many ways, each with its own access.
 *
 * @param body JSON that JSON.parse took, an object at its top, in UTF-8; of several `_results` the last one counts, as
 *   there
 * @returns parts of `body`, where there was no white space
 */
export function itemTexts(body: Buffer): Buffer[] {
  const walk = new Walk(body);
  let texts: Buffer[] = [];
  for (walk.enter(); !walk.isAt(CLOSE_OBJECT); walk.skip(COMMA)) {
    const name = nameOf(walk.value().toString());
    walk.step();
    const isList = walk.isAt(OPEN_LIST);
    if (name === '_results') texts = [];
    if (name === '_results' && isList) texts = walk.items();
    else walk.value();
  }
  return texts;
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1);
}

/** A way through the bytes of a valid JSON text, from token to token. */
class Walk {
  readonly #bytes: Buffer;
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  /** Over white space and the first bracket. */
  enter(): void {
    this.#at = skipSpace(this.#bytes, 0);
    this.step();
  }

  isAt(code: number): boolean {
    return this.#bytes[this.#at] === code;
  }

  /** Over the bracket, comma or colon here, and the space behind it. */
  step(): void {
    this.#at = skipSpace(this.#bytes, this.#at + 1);
  }

  skip(code: number): void {
    if (this.isAt(code)) this.step();
  }

  /** Takes the items of the list here, each without white space between its tokens. */
  items(): Buffer[] {
    const items: Buffer[] = [];
    for (this.step(); !this.isAt(CLOSE_LIST); this.skip(COMMA)) items.push(this.value());
    this.step();
    return items;
  }

  /** Takes the value here, without white space between its tokens, and the space behind it. */
  value(): Buffer {
    const bytes = this.#bytes;
    const from = this.#at;
    let at = from;
    let depth = 0;
    let spaces = 0;
    do {
      const code = bytes[at];
      if (code === QUOTE) at = stringEnd(bytes, at);
      else if (isSpace(code)) {
        spaces++;
        at++;
      } else {
        if (code === OPEN_OBJECT || code === OPEN_LIST) depth++;
        else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--;
        at++;
        if (depth === 0 && isScalar(code)) at = scalarEnd(bytes, at);
      }
    } while (depth > 0);
    this.#at = skipSpace(bytes, at);
    const taken = bytes.subarray(from, at);
    return spaces === 0 ? taken : withoutSpace(taken, spaces);
  }
}

function isSpace(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** A byte of a number, or of `true`, `false` or `null`. */
function isScalar(code: number | undefined): boolean {
  return code !== CLOSE_OBJECT && code !== CLOSE_LIST;
}

function skipSpace(bytes: Buffer, from: number): number {
  let at = from;
  while (isSpace(bytes[at])) at++;
  return at;
}

function scalarEnd(bytes: Buffer, from: number): number {
  let at = from;
  for (; at < bytes.length; at++) {
    const code = bytes[at];
    if (code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST || isSpace(code)) break;
  }
  return at;
}

/** Behind the closing quote of the string that begins here. */
function stringEnd(bytes: Buffer, from: number): number {
  let at = from + 1;
  for (; at < bytes.length; at++) {
    const code = bytes[at];
    if (code === QUOTE) return at + 1;
    if (code === BACKSLASH) at++;
  }
  return at;
}

/** @param spaces how many bytes of white space stand between the tokens */
function withoutSpace(text: Buffer, spaces: number): Buffer {
  const packed = Buffer.allocUnsafe(text.length - spaces);
  let to = 0;
  for (let at = 0; at < text.length; ) {
    const code = text[at];
    if (isSpace(code)) {
      at++;
      continue;
    }
    const end = code === QUOTE ? stringEnd(text, at) : at + 1;
    while (at < end) packed[to++] = text[at++] ?? 0;
  }
  return packed;
}
