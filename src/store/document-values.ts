/** A number of so many digits may be more than JSON.parse reads exactly. */
const LONG_NUMBER = /[\d.]{16}/;

/**
 * What a document says: its texts and numbers in their order, neither the names of its members, nor the addresses in
 * `_links`. Without recursion, however deep the document is nested.
 *
 * @param most so many UTF-16 units of them are enough
 * @throws SyntaxError when the document is damaged
 */
export function documentValues(document: string, most: number): string {
  const values: string[] = [];
  let room = most;
  const add = (text: string) => {
    values.push(text.slice(0, room));
    room -= text.length + 1;
  };
  const open: unknown[] = [parse(document)];
  while (open.length > 0 && room > 0) {
    const value = open.pop();
    if (typeof value === 'string') add(value);
    else if (typeof value === 'number') add(String(value));
    else if (typeof value === 'object' && value !== null) {
      const members = Array.isArray(value)
        ? value
        : Object.entries(value).flatMap(([name, member]) => (name === '_links' ? [] : [member]));
      for (let i = members.length - 1; i >= 0; i--) open.push(members[i]);
    }
  }
  return values.join('\n');
}

/** Numbers that may lose digits are read as texts. */
function parse(document: string): unknown {
  if (!LONG_NUMBER.test(document)) return JSON.parse(document);
  try {
    return JSON.parse(document, (_name, value, context?: { source?: string }) =>
      typeof value === 'number' ? (context?.source ?? value) : value,
    );
  } catch {
    // With a function it calls itself at every level, and cannot get to the ground of any document.
    return JSON.parse(document);
  }
}
