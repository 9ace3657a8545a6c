/** JSON.parse may round a number of so many digits. */
const LONG_NUMBER = /[\d.]{16}/;

/** The member with addresses, which no search is about. */
const LINKS = '_links';

/**
 * The texts and numbers of a document in their order, without member names and `_links`. It does not recurse, as a
 * document may be nested deeply.
 *
 * @param most how many UTF-16 units of them to return
 * @throws SyntaxError when the document is damaged
 */
export function documentValues(document: string, most: number): string {
  const values: string[] = [];
  let room = most;
  const add = (text: string) => {
    values.push(text.slice(0, room));
    room -= text.length + 1;
  };
  const open: unknown[] = [parseExactly(document)];
  while (open.length > 0 && room > 0) {
    const value = open.pop();
    if (typeof value === 'string') add(value);
    else if (typeof value === 'number') add(String(value));
    else if (typeof value === 'object' && value !== null) {
      const names = Object.keys(value);
      for (let i = names.length - 1; i >= 0; i--) {
        const name = names[i] as keyof typeof value;
        if (name !== LINKS) open.push(value[name]);
      }
    }
  }
  return values.join('\n');
}

/** Parses JSON; numbers that may lose digits become texts. @throws SyntaxError */
export function parseExactly(document: string): unknown {
  if (!LONG_NUMBER.test(document)) return JSON.parse(document);
  try {
    return JSON.parse(document, (_name, value, context?: { source?: string }) =>
      typeof value === 'number' ? (context?.source ?? value) : value,
    );
  } catch {
    // With a function, JSON.parse recurses: a deep document overflows its stack.
    return JSON.parse(document);
  }
}
