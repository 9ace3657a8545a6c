/** What examples and documents put in the place of a secret, wherever it stands. */
const PLACEHOLDER = new RegExp(
  [
    'placeholder|keyboard[-_ .]?cat|do[-_ .]?not[-_ .]?use',
    'change[-_ .]?(?:me|it|this|that|the|now)',
    '(?:replace|insert|generate|fill)[-_ .](?:me|it|in|this|with)',
    'your[-_ .]?(?:own|secret|session|token|key|password|random|long|value|app|operator)',
  ].join('|'),
  'i',
);

/** The word that everybody thinks of, and whatever comes before or behind it but letters. */
const PASSWORDS = /^(?:[^a-z]*p[a@]ssw[o0]rd)+[^a-z]*$/i;

/**
 * Whether a text is what usually stands in examples in the place of a secret. Chance does not bring that about: of random
 * texts of 64 characters in Base64 one in a hundred million holds any of these words, as the shortest have seven letters.
 */
export function isPlaceholder(secret: string): boolean {
  return PLACEHOLDER.test(secret) || PASSWORDS.test(secret);
}

/** Whether bytes are a text, or count up from zero: each is below 128, as of 32 random ones once in four billion. */
export function isTypedKey(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte < 128);
}
