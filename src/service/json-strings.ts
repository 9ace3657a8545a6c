const BACKSLASH = 0x5c;

/**
 * Behind the closing quote of the string that begins here: the next quote before which no backslash is left over; the
 * text's end where none closes it.
 */
export function stringEnd(text: string, from: number): number {
  for (let at = text.indexOf('"', from + 1); at !== -1; at = text.indexOf('"', at + 1)) {
    let before = at;
    while (text.charCodeAt(before - 1) === BACKSLASH) before--;
    if ((at - before) % 2 === 0) return at + 1;
  }
  return text.length;
}
