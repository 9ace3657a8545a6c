/** What examples and documents put in the place of a secret, wherever it stands. */
const PLACEHOLDER = new RegExp(
  [
    'placeholder',
    'change[-_ .]?(?:me|it|this|that|now)',
    'replace[-_ .]?(?:me|it|this|with)',
    'your[-_ .](?:own|secret|session|token|key|password|random|long|value|app|operator)',
  ].join('|'),
  'i',
);

/** The word that everybody thinks of, and whatever comes before or behind it but letters. */
const PASSWORDS = /^(?:[^a-z]*p[a@]ssw[o0]rd)+[^a-z]*$/i;

/**
 * Whether a text is what stands in examples in the place of a secret. Chance does not bring that about: the shortest of
 * these words has eight letters, of which random texts in Base64 hold a given one once in a billion.
 */
export function isPlaceholder(secret: string): boolean {
  return PLACEHOLDER.test(secret) || PASSWORDS.test(secret);
}
