import { knownSecrets } from './known-secrets.ts';
import { redactText } from './redaction.ts';

/**
 * How much of a text behind its cut is looked at, in UTF-16 units: a secret that the cut splits is found there by its
 * first characters, also where each of them is written as an escape of twelve.
 */
const BEHIND_CUT = 256;

/** Leaves out of a text what looks like a credential, and every secret that this process has had in its hands. */
export function hideSecrets(text: string): string {
  return redactText(knownSecrets.hide(text));
}

/**
 * The beginning of a text that may be long, for the log. Where it is cut off, secrets are hidden first: of one that the
 * cut split, the beginning would be too short to be told.
 *
 * @param most how much of it is shown, in UTF-16 units
 */
export function shownPart(text: string, most: number): string {
  if (text.length <= most) return text;
  const hidden = hideSecrets(text.slice(0, most + BEHIND_CUT));
  const whole = text.length > most + BEHIND_CUT ? Math.max(0, hidden.length - BEHIND_CUT) : hidden.length;
  return `${hidden.slice(0, Math.min(most, whole)).toWellFormed()}…`;
}
