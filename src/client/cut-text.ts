/** What no token holds, in none of its encodings (RFC 6750, section 2.1). */
const BETWEEN_WORDS = /[\s"'<>()[\]{},]/;

/** What the parts of a path have between them. */
const BETWEEN_PARTS = /\//;

/**
 * The beginning of a text that may be long, cut off where a word ends, so that no beginning of a secret is left that
 * would be too short to be told. Of one long word nothing is left.
 *
 * @param most how much of it is kept, in UTF-16 units
 */
export function cutText(text: string, most: number): string {
  return cutBetween(text, most, BETWEEN_WORDS);
}

/** Likewise of a path, which is cut off behind a slash. */
export function cutPath(path: string, most: number): string {
  return cutBetween(path, most, BETWEEN_PARTS);
}

function cutBetween(text: string, most: number, between: RegExp): string {
  if (text.length <= most) return text;
  let end = most;
  while (end > 0 && !between.test(text.charAt(end - 1))) end--;
  return `${text.slice(0, end)}…`;
}
