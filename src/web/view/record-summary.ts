/** What a list shows of a record, whatever its document looks like. */
export interface RecordSummary {
  title: string;
  secondary: string;
}

/** Names that usually carry what a person would call the thing. */
const TITLE_NAMES = ['name', 'subject', 'title'];
const MAX_TEXT = 120;
const MAX_SECONDARY = 3;
/** How deep, and through how many values, a search for words goes; documents may be of any size. */
const MAX_DEPTH = 3;
const MAX_VALUES = 200;

function parse(document: string): unknown {
  try {
    return JSON.parse(document);
  } catch {
    return undefined;
  }
}

/** Cuts between characters, not inside of them. */
function shorten(text: string): string {
  const characters = Array.from(text.slice(0, MAX_TEXT * 2));
  return characters.length > MAX_TEXT
    ? `${characters.slice(0, MAX_TEXT - 1).join('')}…`
    : characters.join('');
}

/** Words for people: no ids, addresses of the API, dates, or empty strings. */
function isWords(text: string, id: string): boolean {
  return (
    text.trim() !== '' &&
    text !== id &&
    !/^https?:\/\//i.test(text) &&
    !/^\d{4}-\d\d-\d\dT/.test(text) &&
    !/^[a-z]{2,5}_[\da-z]{4,}$/.test(text)
  );
}

/** One of a few fixed values, such as `email` or `open`: says less than what somebody wrote. */
function isKeyword(text: string): boolean {
  return /^[a-z_]+$/.test(text);
}

/** Strings of a document in its order, the outer ones first; links are no content. */
function* words(document: unknown, id: string): Generator<string> {
  let level: unknown[] = [document];
  let seen = 0;
  for (let depth = 0; depth <= MAX_DEPTH && level.length > 0; depth += 1) {
    const deeper: unknown[] = [];
    for (const value of level) {
      if (typeof value !== 'object' || value === null) continue;
      for (const [name, inner] of Object.entries(value)) {
        seen += 1;
        if (seen > MAX_VALUES) return;
        if (typeof inner === 'string' && isWords(inner, id)) yield inner;
        else if (!name.startsWith('_')) deeper.push(inner);
      }
    }
    level = deeper;
  }
}

function titleOf(document: unknown): string | undefined {
  if (typeof document !== 'object' || document === null) return undefined;
  const fields = document as Record<string, unknown>;
  for (const name of TITLE_NAMES) {
    const value = fields[name];
    if (typeof value === 'string' && value.trim() !== '') return value;
  }
  return undefined;
}

/**
 * Finds a title and some further words in a document. The specification names hardly any fields of contacts and
 * conversations (Resources and their fields), so nothing here relies on one.
 */
export function summarizeRecord(id: string, document: string): RecordSummary {
  const parsed = parse(document);
  const found = [...words(parsed, id)];
  const title = titleOf(parsed) ?? found[0] ?? id;
  const others = [...new Set(found)].filter((text) => text !== title);
  const telling = [...others.filter((text) => !isKeyword(text)), ...others.filter(isKeyword)].slice(
    0,
    MAX_SECONDARY,
  );
  return { title: shorten(title), secondary: shorten(telling.join(' · ')) };
}
