import { KnownSecrets, knownSecrets } from './known-secrets.ts';
import { redactText } from './redaction.ts';

/**
 * How much of a text behind its cut is looked at, in UTF-16 units: a secret that the cut splits is found there by its
 * first characters, also where each of them is written as an escape of twelve.
 */
const BEHIND_CUT = 256;

/** Slots for the windows of one secret, as a power of two. */
const SLOT_BITS_FOR_ONE = 8;

/**
 * Leaves out of a text what looks like a credential, and every secret that this process has had in its hands.
 *
 * @param own a secret of this text's affair alone, such as the code that a visitor came with: as anybody may have made
 *   it up, no other text is searched for it
 */
export function hideSecrets(text: string, own?: string): string {
  return redactText(knownSecrets.hide(own === undefined ? text : withoutOwn(text, own)));
}

/**
 * The beginning of a text that may be long, for the log. Where it is cut off, secrets are hidden first: of one that the
 * cut split, the beginning would be too short to be told.
 *
 * @param most how much of it is shown, in UTF-16 units
 * @param own as in {@link hideSecrets}
 */
export function shownPart(text: string, most: number, own?: string): string {
  if (text.length <= most) return own === undefined ? text : withoutOwn(text, own);
  const hidden = hideSecrets(text.slice(0, most + BEHIND_CUT), own);
  const whole = text.length > most + BEHIND_CUT ? Math.max(0, hidden.length - BEHIND_CUT) : hidden.length;
  return `${hidden.slice(0, Math.min(most, whole)).toWellFormed()}…`;
}

function withoutOwn(text: string, own: string): string {
  const secrets = new KnownSecrets({ slotBits: SLOT_BITS_FOR_ONE });
  secrets.pin(own);
  return secrets.hide(text);
}
