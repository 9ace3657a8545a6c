/** What no token holds, in none of its encodings (RFC 6750, section 2.1). */
const BETWEEN_WORDS = /[\s"'<>()[\]{},]/;

/**
 * The beginning of a text that may be long, cut off where a word ends, so that no beginning of a secret is left that
 * would be too short to be told. Of one long word nothing is left.
 *
 * @param most how much of it is kept, in UTF-16 units
 */
export function cutText(text: string, most: number): string {
  if (text.length <= most) return text;
  let end = most;
  while (end > 0 && !BETWEEN_WORDS.test(text.charAt(end - 1))) end--;
  return `${text.slice(0, end)}…`;
}
