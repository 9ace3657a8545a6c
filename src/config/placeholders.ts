import type { TokenKey } from './token-keys.ts';
import { readsAsWords } from './typed-text.ts';

/** 32 random bytes hold some 30 different ones, and once in seven billion fewer than this: it is a pattern or a text. */
const FEWEST_DIFFERENT_BYTES = 20;

/** So do the steps from each to the next, of which there is one less. */
const FEWEST_DIFFERENT_STEPS = 18;

/** The steps in the text of a random key are some thirty different ones; in an alphabet they are a few. */
const FEWEST_DIFFERENT_STEPS_OF_TEXT = 12;

/** What examples and documents put in the place of a secret, wherever it stands. */
const PLACEHOLDER = new RegExp(
  [
    'placeholder|keyboard[-_ .]?cat|do[-_ .]?not[-_ .]?use',
    'change[-_ .]?(?:me|it|this|that|the|now)',
    '(?:replace|insert|generate|fill)[-_ .](?:me|it|in|this|with)',
    'your[-_ .]?(?:own|secret|session|token|key|password|random|long|value|app|operator|client|oauth)',
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

/** Whether a text stands where a secret belongs: one such as {@link isPlaceholder} knows, or one between `<` and `>`. */
export function standsForSecret(secret: string): boolean {
  return /^<.*>$/s.test(secret.trim()) || isPlaceholder(secret);
}

/** Whether a key is random, as far as can be told: neither a pattern nor a text, as bytes and in Base64. */
export function isRandomKey(key: TokenKey['key']): boolean {
  if (new Set(key).size < FEWEST_DIFFERENT_BYTES || isTypedKey(key)) return false;
  if (differentSteps(key) < FEWEST_DIFFERENT_STEPS) return false;
  const text = key.toString('base64');
  if (isPlaceholder(text) || differentSteps(Buffer.from(text)) < FEWEST_DIFFERENT_STEPS_OF_TEXT) return false;
  // The last character stands for fewer bits than the others: chance makes only some of them.
  return !readsAsWords(text.replace(/.=*$/, ''));
}

/** How many different steps lead from each byte to the next. */
function differentSteps(bytes: Uint8Array): number {
  return new Set(bytes.subarray(1).map((byte, index) => byte - (bytes[index] ?? 0))).size;
}

/** Whether bytes are a text, or count up from zero: each is below 128, as of 32 random ones once in four billion. */
export function isTypedKey(bytes: Uint8Array): boolean {
  return bytes.every((byte) => byte < 128);
}
