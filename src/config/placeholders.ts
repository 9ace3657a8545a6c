/** Words and rows of eight letters and digits or more, wherever they stand. */
const ANYWHERE = new RegExp(
  [
    'p[a@]ssw[o0]rd|passphrase|placeholder',
    'change[-_ .]?(?:me|it|this|that|now)|replace[-_ .]?(?:me|it|this|with)',
    'your[-_ .](?:own|secret|session|token|key|random|long|value|app|operator)',
    '(?:my|our|top|super|very)[-_ .]?secret|secret[-_ .]?(?:key|word|here|value)',
    '12345678|23456789|87654321|abcdefgh|qwertyui|asdfghjk',
  ].join('|'),
  'i',
);

/** Shorter words, with no letter before them or behind. */
const ALONE = /(?<![a-z])(?:change|default|example|insecure|insert|replace|sample|secrets?|unsafe)(?![a-z])/i;

/** The first and the last character that can be seen in ASCII, a blank among them. */
const [BLANK, TILDE] = [0x20, 0x7e];

/**
 * Whether a text holds words that stand in placeholders, or that many people think of.
 *
 * Chance does not bring them about: of random texts of 43 characters in Base64 about one in a hundred million holds any of
 * these (a word of six letters, in capitals or not, with no letter beside it: one in 650 million), of 64 hexadecimal digits
 * one in twenty million, by a row of digits.
 */
export function holdsPlaceholder(secret: string): boolean {
  return ANYWHERE.test(secret) || ALONE.test(secret);
}

/** Whether bytes are a text that somebody has typed: of 32 random ones, one in 10¹³ is. */
export function isTypedText(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte >= BLANK && byte <= TILDE);
}
