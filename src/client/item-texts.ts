import { stringEnd } from './json-strings.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const COLON = 0x3a;
const OPEN_LIST = 0x5b;
const CLOSE_LIST = 0x5d;
const OPEN_OBJECT = 0x7b;
const CLOSE_OBJECT = 0x7d;

/**
 * The text of each item of a page's top-level `_results`, exactly as it came, but for white space between tokens: large
 * integers, `1.0`, escapes and the order of names survive, which JSON.parse does not keep. One pass over the
 * characters, without recursion.
 *
 * @param body JSON that JSON.parse took, an object at its top; of several `_results` the last one counts, as there
 */
export function itemTexts(body: string): string[] {
  const walk = new Walk(body);
  let texts: string[] = [];
  for (const name of walk.members()) {
    if (nameOf(name) === '_results') texts = walk.isAt(OPEN_LIST) ? [...walk.items()] : [];
  }
  return texts;
}

function nameOf(quoted: string): string {
  return quoted.includes('\\') ? JSON.parse(quoted) : quoted.slice(1, -1);
}

/** A way through the characters of a valid JSON text. */
class Walk {
  readonly #text: string;
  #at = 0;

  constructor(text: string) {
    this.#text = text;
    this.#skipSpace();
  }

  isAt(code: number): boolean {
    return this.#text.charCodeAt(this.#at) === code;
  }

  /** The names of the object here, quoted; at each of them the walk stands before its value, and may take it. */
  *members(): Iterable<string> {
    this.#step();
    while (!this.isAt(CLOSE_OBJECT)) {
      const name = this.value();
      if (this.isAt(COLON)) this.#step();
      const before = this.#at;
      yield name;
      if (this.#at === before) this.value();
      if (this.isAt(COMMA)) this.#step();
    }
  }

  /** The items of the list here, each without white space between its tokens. */
  *items(): Iterable<string> {
    this.#step();
    while (!this.isAt(CLOSE_LIST)) {
      yield this.value();
      if (this.isAt(COMMA)) this.#step();
    }
    this.#step();
  }

  /** Takes the value here, without white space between its tokens, and the space behind it. */
  value(): string {
    const text = this.#text;
    let at = this.#at;
    let from = at;
    let taken = '';
    let depth = 0;
    do {
      const code = text.charCodeAt(at);
      if (code === QUOTE) {
        at = stringEnd(text, at);
        continue;
      }
      if (isSpace(code)) {
        taken += text.slice(from, at);
        do at++;
        while (isSpace(text.charCodeAt(at)));
        from = at;
        continue;
      }
      if (code === OPEN_OBJECT || code === OPEN_LIST) depth++;
      else if (code === CLOSE_OBJECT || code === CLOSE_LIST) depth--;
      at++;
      if (depth === 0 && isScalar(code)) at = scalarEnd(text, at);
    } while (depth > 0);
    this.#at = at;
    this.#skipSpace();
    return taken === '' ? text.slice(from, at) : taken + text.slice(from, at);
  }

  /** Over the bracket, comma or colon here, and the space behind it. */
  #step(): void {
    this.#at++;
    this.#skipSpace();
  }

  #skipSpace(): void {
    while (isSpace(this.#text.charCodeAt(this.#at))) this.#at++;
  }
}

function isSpace(code: number): boolean {
  return code === 0x20 || code === 0x0a || code === 0x0d || code === 0x09;
}

/** A character of a number, or of `true`, `false` or `null`. */
function isScalar(code: number): boolean {
  return code !== CLOSE_OBJECT && code !== CLOSE_LIST;
}

function scalarEnd(text: string, from: number): number {
  let at = from;
  for (; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === CLOSE_OBJECT || code === CLOSE_LIST || isSpace(code)) break;
  }
  return at;
}
