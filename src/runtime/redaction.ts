/** What stands in place of a secret. */
export const REDACTED = '[redacted]';

// Strangers write these texts: every pattern must run in linear time.
const CREDENTIALS = /\b(Bearer|Basic)\s+[\w.~+/=-]{16,}/gi;
const USER_INFO = /:\/\/[^\s/@"\\]+@/g;
/** OAuth's parameters, in a form or in JSON. */
const PARAMETERS =
  /\b((?:(?:access|refresh|id|page)_)?token|client_secret|code_verifier|code|state|password)(=|\\?"\s*:\s*\\?")[^\s"'&;,\\]+/gi;
const LONG_RUN = /[\w%+~-]{20,}/g;
/** Names keep their digits apart: `0002-add-customers`. */
const MIXED = /\d[a-z]|[a-z]\d/i;
/** In UTF-16 units. V8 overflows its stack at a run of megabytes. */
const LONGEST_TEXT = 100_000;
/** The app's own instance ids are no secrets. */
const INSTANCE_ID = /^ins_[\da-f]{32}$/;

/**
 * Blanks credentials in a text from the service, a library or the handler: `Bearer …` and `Basic …`, passwords in URLs,
 * OAuth's parameters, and runs of 20 or more token characters that mix letters and digits.
 * Redact before you cut: half a token looks like a word.
 */
export function redact(text: string): string {
  return text
    .slice(0, LONGEST_TEXT)
    .replace(CREDENTIALS, `$1 ${REDACTED}`)
    .replace(USER_INFO, `://${REDACTED}@`)
    .replace(PARAMETERS, `$1$2${REDACTED}`)
    .replace(LONG_RUN, (run) => (MIXED.test(run) && !INSTANCE_ID.test(run) ? REDACTED : run));
}
