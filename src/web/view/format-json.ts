const INDENT = '  ';
const OPEN = new Set(['{', '[']);
const CLOSE = new Set(['}', ']']);
/** Beyond this depth lines move no further right; a document nested ten thousand deep stays readable for the browser. */
const MAX_INDENT = 40;

function newLine(depth: number): string {
  return `\n${INDENT.repeat(Math.min(depth, MAX_INDENT))}`;
}

/** Where the string that begins at `start` ends (index of the character after its closing quote). */
function endOfString(text: string, start: number): number {
  let at = start + 1;
  while (at < text.length && text[at] !== '"') at += text[at] === '\\' ? 2 : 1;
  return at + 1;
}

/**
 * Sets out a JSON text on lines without reading it into values: numbers, escapes, and the order of names stay
 * as they came, which parsing and writing again would change. Text that is not JSON comes out readable as well.
 */
export function formatJson(text: string): string {
  const out: string[] = [];
  let depth = 0;
  let at = 0;
  let empty = false;
  while (at < text.length) {
    const character = text[at] ?? '';
    if (character === '"') {
      const end = endOfString(text, at);
      out.push(empty ? newLine(depth) : '', text.slice(at, end));
      at = end;
      empty = false;
      continue;
    }
    at += 1;
    if (/\s/.test(character)) continue;
    if (CLOSE.has(character)) {
      depth = Math.max(0, depth - 1);
      out.push(empty ? '' : newLine(depth), character);
      empty = false;
      continue;
    }
    if (empty) out.push(newLine(depth));
    empty = OPEN.has(character);
    if (empty) depth += 1;
    out.push(character);
    if (character === ',') out.push(newLine(depth));
    else if (character === ':') out.push(' ');
  }
  return out.join('');
}
