const HIDDEN = '[redacted]';

/** Shorter ones are no secrets that a machine made, and would blank plain words, in characters. */
const SHORTEST = 12;

/** By so many first characters a secret is found; the rest is compared then. */
const PROBE_CHARACTERS = 12;

/** Secrets that are kept at most; the one that was used least lately makes room. */
const MOST_SECRETS = 5_000;

/**
 * The secrets that this process has had in its hands, so that texts that come from elsewhere (a message of the service,
 * an error of the own logic) and repeat one can be told, whatever they look like.
 */
export class KnownSecrets {
  readonly #most: number;
  readonly #formsOf = new Map<string, string[]>();
  readonly #byStart = new Map<string, Set<string>>();
  /** Pairs of characters that some form has begun with: most places of a text are passed over by this alone. */
  readonly #pairs = new Uint8Array(2 ** 16);

  constructor(most = MOST_SECRETS) {
    this.#most = most;
  }

  /** Remembers a secret; one that is known already counts as used. */
  add(secret: string): void {
    if (secret.length < SHORTEST) return;
    const known = this.#formsOf.get(secret);
    if (known !== undefined) {
      this.#formsOf.delete(secret);
      this.#formsOf.set(secret, known);
      return;
    }
    const forms = formsOf(secret);
    this.#formsOf.set(secret, forms);
    for (const form of forms) {
      this.#pairs[pairAt(form, 0)] = 1;
      const start = form.slice(0, PROBE_CHARACTERS);
      const others = this.#byStart.get(start);
      if (others === undefined) this.#byStart.set(start, new Set([form]));
      else others.add(form);
    }
    if (this.#formsOf.size > this.#most) this.#forgetOldest();
  }

  /** The text with every known secret left out: as it is, escaped, encoded, and where it is cut off. */
  hide(text: string): string {
    let out = '';
    let copiedTo = 0;
    for (let at = 0; at + PROBE_CHARACTERS <= text.length; at++) {
      if (this.#pairs[pairAt(text, at)] === 0) continue;
      const forms = this.#byStart.get(text.slice(at, at + PROBE_CHARACTERS));
      if (forms === undefined) continue;
      const longest = [...forms].reduce((most, form) => Math.max(most, sharedStart(form, text, at)), 0);
      out += text.slice(copiedTo, at) + HIDDEN;
      copiedTo = at + longest;
      at = copiedTo - 1;
    }
    return copiedTo === 0 ? text : out + text.slice(copiedTo);
  }

  #forgetOldest(): void {
    const oldest = this.#formsOf.entries().next().value;
    if (oldest === undefined) return;
    const [secret, forms] = oldest;
    this.#formsOf.delete(secret);
    for (const form of forms) {
      const start = form.slice(0, PROBE_CHARACTERS);
      const others = this.#byStart.get(start);
      others?.delete(form);
      if (others?.size === 0) this.#byStart.delete(start);
    }
  }
}

function pairAt(text: string, at: number): number {
  return ((text.charCodeAt(at) & 0xff) << 8) | (text.charCodeAt(at + 1) & 0xff);
}

/** How many characters of a form stand in the text from a place on. */
function sharedStart(form: string, text: string, from: number): number {
  let length = 0;
  while (length < form.length && form[length] === text[from + length]) length++;
  return length;
}

/** How a text looks in the encodings that texts meet on their way. */
function formsOf(text: string): string[] {
  const bytes = Buffer.from(text, 'utf8');
  const json = JSON.stringify(text).slice(1, -1);
  const forms = [
    text,
    json,
    JSON.stringify(json).slice(1, -1),
    encodeURIComponent(text),
    new URLSearchParams({ text }).toString().slice('text='.length),
    bytes.toString('hex'),
    bytes.toString('hex').toUpperCase(),
    ...[0, 1, 2].flatMap((offset) => base64At(bytes, offset)),
  ];
  return [...new Set(forms)].filter((form) => form.length >= PROBE_CHARACTERS);
}

/**
 * What of a longer text's Base64 is these bytes' alone: they begin at one of three places in a group of three bytes, and
 * share the characters at their ends with their neighbours.
 */
function base64At(bytes: Buffer, offset: number): string[] {
  const encoded = Buffer.concat([Buffer.alloc(offset), bytes]).toString('base64');
  const core = encoded.slice(Math.ceil((offset * 8) / 6), Math.floor(((offset + bytes.length) * 8) / 6));
  return [core, core.replaceAll('+', '-').replaceAll('/', '_')];
}

/** Those of this process: there is one log, and one memory. */
export const knownSecrets = new KnownSecrets();
