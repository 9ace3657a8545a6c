const SPACE = 0x20;
const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const LAST_LETTER = 0x5a;
const OPEN_LIST = 0x5b;
const BACKSLASH = 0x5c;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/** Where something stands in a page, and how many bytes of white space are between its tokens. */
interface Span {
  from: number;
  to: number;
  spaces: number;
}

/** Where the parts of a page are that count. */
interface PageOutline {
  /** The text of `_pagination`; undefined where there is none. */
  pagination: string | undefined;
  /** Whether there is an `_error` that is not null. */
  hasError: boolean;
  /** How many items are in `_results`; undefined where that is no list. */
  count: number | undefined;
  /**
   * The text of each item, exactly as it came, but for white space between tokens: large integers, `1.0`, escapes and the
   * order of names survive, which JSON.parse does not keep. Parts of the body, where there was no white space.
   */
  texts(): Buffer[];
}

/**
 * Finds the parts of a page, so that the next one can be asked for before this one is parsed: one pass over the bytes,
 * without recursion, and nothing is made on the way. Bytes are all alike, while a string may be kept in one of many ways,
 * each with its own access.
 *
 * What JSON.parse takes, it reads alike: of several members of a name the last one counts. Much of what JSON.parse refuses
 * passes here.
 *
 * @param body in UTF-8
 * @param mostItems it looks no further behind so many, and counts one more
 * @returns undefined when that is no object, or ends before its end
 */
export function outlineOf(body: Buffer, mostItems: number): PageOutline | undefined {
  const walk = new Walk(body);
  const outline: Omit<PageOutline, 'texts'> = { pagination: undefined, hasError: false, count: undefined };
  let places: number[] = [];
  if (!walk.enter()) return undefined;
  for (; !walk.isAt(CLOSE_OBJECT); walk.skip(COMMA)) {
    if (!walk.isAt(QUOTE)) return undefined;
    const name = nameOf(walk.value());
    if (!walk.isAt(COLON)) return undefined;
    walk.step();
    const isList = walk.isAt(OPEN_LIST);
    if (name === '_results') {
      places = [];
      if (isList) walk.items(places, mostItems);
      else walk.pass();
      outline.count = isList ? places.length / 3 : undefined;
      if (outline.count !== undefined && outline.count > mostItems) break;
    } else if (name === '_pagination') outline.pagination = walk.value();
    else if (name === '_error') outline.hasError = walk.value() !== 'null';
    else walk.pass();
    if (walk.isBeyondEnd) return undefined;
  }
  return { ...outline, texts: () => textsAt(body, places) };
}

/** @param places of each: where it begins and ends, and how many bytes of white space are between its tokens */
function textsAt(body: Buffer, places: readonly number[]): Buffer[] {
  const texts: Buffer[] = [];
  for (let at = 0; at < places.length; at += 3) {
    const text = body.subarray(places[at], places[at + 1]);
    const spaces = places[at + 2] ?? 0;
    texts.push(spaces === 0 ? text : withoutSpace(text, spaces));
  }
  return texts;
}

/** @returns the quoted name, where it cannot be read: it is none of those that count */
function nameOf(quoted: string): string {
  if (!quoted.includes('\\')) return quoted.slice(1, -1);
  try {
    return JSON.parse(quoted);
  } catch {
    return quoted;
  }
}

/** A way through the bytes of a JSON text, from token to token; each step leads on, whatever the bytes are. */
class Walk {
  readonly #bytes: Buffer;
  readonly #span: Span = { from: 0, to: 0, spaces: 0 };
  #at = 0;

  constructor(bytes: Buffer) {
    this.#bytes = bytes;
  }

  get isBeyondEnd(): boolean {
    return this.#at >= this.#bytes.length;
  }

  /** Over white space and the bracket of an object; false where there is none. */
  enter(): boolean {
    this.#at = skipSpace(this.#bytes, 0);
    const isObject = this.isAt(OPEN_OBJECT);
    this.step();
    return isObject;
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

  /** Over the list here, up to one item more than so many: three numbers go to `places` for each, as {@link textsAt} takes them. */
  items(places: number[], most: number): void {
    for (this.step(); !this.isAt(CLOSE_LIST) && !this.isBeyondEnd; this.skip(COMMA)) {
      const { from, to, spaces } = this.pass();
      places.push(from, to, spaces);
      if (places.length / 3 > most) return;
    }
    this.step();
  }

  /** The text of the value here; over it, and the space behind it. */
  value(): string {
    const { from, to } = this.pass();
    return this.#bytes.toString('utf8', from, to);
  }

  /** Over the value here, and the space behind it. @returns where it was, until the next value is passed */
  pass(): Readonly<Span> {
    const bytes = this.#bytes;
    const span = this.#span;
    const from = this.#at;
    const code = bytes[from];
    span.spaces = 0;
    if (code === OPEN_OBJECT || code === OPEN_LIST) span.to = bracketsEnd(bytes, from, span);
    else if (code === QUOTE) span.to = stringEnd(bytes, from);
    else span.to = scalarEnd(bytes, from + 1);
    span.from = from;
    this.#at = skipSpace(bytes, span.to);
    return span;
  }
}

function isSpace(code: number | undefined): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
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

/**
 * Behind the bracket that closes the one here; what is not space between tokens is taken for it where JSON has none. Nearly
 * every byte of a page comes by here: the order of the comparisons halves the time.
 */
function bracketsEnd(bytes: Buffer, from: number, span: Span): number {
  const { length } = bytes;
  let at = from;
  let depth = 0;
  let spaces = 0;
  do {
    const code = bytes[at] ?? 0;
    if (code === QUOTE) at = stringEnd(bytes, at);
    else {
      at++;
      if (code > LAST_LETTER) {
        if (code === OPEN_OBJECT || code === OPEN_LIST) depth++;
        else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--;
      } else if (code <= SPACE) spaces++;
    }
  } while (depth > 0 && at < length);
  span.spaces = spaces;
  return at;
}

/** Behind the closing quote of the string that begins here. */
function stringEnd(bytes: Buffer, from: number): number {
  const { length } = bytes;
  let at = from + 1;
  let code: number | undefined;
  do {
    code = bytes[at++];
    if (code === BACKSLASH) at++;
  } while (code !== QUOTE && at < length);
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
