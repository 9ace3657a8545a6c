import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto';

/** Tells whether a text is a secret, in a time that tells nothing of it. */
export interface SecretMatcher {
  matches(given: string): boolean;
  /** What is compared: of the same length whatever was given, and under a key that nobody knows. */
  digest(text: string): Buffer;
}

/** Compares by digests, as a comparison of the texts would end sooner the sooner they differ, or differ in length. */
export function secretMatcher(secret: string): SecretMatcher {
  const key = randomBytes(32);
  const digest = (text: string) => createHmac('sha256', key).update(text).digest();
  const expected = digest(secret);
  return { digest, matches: (given) => timingSafeEqual(digest(given), expected) };
}
