/** A secret, and where it may stand as it is. */
interface Canary {
  name: string;
  value: string;
}

/** Secrets that must not come out anywhere, and the search for them in every form that they could take. */
export class Canaries {
  readonly #all = new Map<string, Canary>();

  get names(): string[] {
    return [...new Set([...this.#all.values()].map(({ name }) => name))].toSorted();
  }

  /** Adds a secret of a kind; the same one twice counts once. */
  add(name: string, value: string): void {
    if (value.length < 8) throw new Error(`${name} is too short to be searched for`);
    this.#all.set(value, { name, value });
  }

  /**
   * Searches a text, or bytes as Latin-1, for all of them.
   *
   * @param where names the text in what is found
   * @param but kinds that may stand there
   * @returns what was found: place, kind, form, and the text before it; never the secret
   */
  hits(where: string, text: string, but: readonly string[] = []): string[] {
    return [...this.#all.values()]
      .filter(({ name }) => !but.includes(name))
      .flatMap(({ name, value }) =>
        [...formsOf(value)].flatMap(([form, needle]) => {
          const at = text.indexOf(needle);
          if (at === -1) return [];
          return [`${where}: ${name} ${form} after ${JSON.stringify(text.slice(Math.max(0, at - 60), at))}`];
        }),
      );
  }
}

/** A text in its forms, by name; those that look like a form before are left out. */
export function formsOf(value: string): Map<string, string> {
  const bytes = Buffer.from(value, 'utf8');
  const forms: [string, string][] = [
    ['plain', value],
    ['URL-encoded', encodeURIComponent(value)],
    ['as a form', new URLSearchParams({ x: value }).toString().slice(2)],
    ['JSON-escaped', JSON.stringify(value).slice(1, -1)],
    ['JSON-escaped twice', JSON.stringify(JSON.stringify(value)).slice(3, -3)],
    [
      'HTML-escaped',
      value
        .replace(/&/g, '&amp;')
        .replace(/</g, '&lt;')
        .replace(/>/g, '&gt;')
        .replace(/"/g, '&quot;')
        .replace(/'/g, '&#39;'),
    ],
    ['in hex', bytes.toString('hex')],
    ['in capital hex', bytes.toString('hex').toUpperCase()],
  ];
  // Inside of a longer text that was encoded as a whole (`Basic <id:secret>`) it begins at any of three places.
  for (const offset of [0, 1, 2]) {
    const characters = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const whole = Math.floor(((offset + bytes.length) * 8) / 6);
    const core = characters.slice([0, 2, 3][offset], whole);
    forms.push(
      [`in Base64 (${offset})`, core],
      [`in base64url (${offset})`, core.replaceAll('+', '-').replaceAll('/', '_')],
    );
  }
  const unique = new Map<string, string>();
  for (const [form, needle] of forms) {
    if (![...unique.values()].includes(needle)) unique.set(form, needle);
  }
  return unique;
}
