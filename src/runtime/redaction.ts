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
/** The names of secrets, such as `access_token`, `clientSecret`, `set-cookie`, `apiKeys`. */
const SECRET_NAME =
  /(?:authorization|cookie|credential|passphrase|password|passwd|secret|token|jwt|(?:api|access|private|secret)[-_]?key|session[-_]?id|(?:^|[-_.])sid)s?$/i;
/** In UTF-16 units. Shorter values, such as `true`, are parts of other texts, too. */
const SHORTEST_SECRET = 6;

/** Of the fork's settings. The longest value comes first, as it may contain another. */
const hidden = { names: new Set<string>(), values: [] as string[] };

/** Blanks more secrets of this process: fields with these names, and the values of these names wherever they occur. */
export function hideSecrets(names: readonly string[], values: Readonly<Record<string, unknown>> = {}): void {
  const texts = names
    .flatMap((name) => values[name])
    .filter((value) => typeof value === 'string' && value.length >= SHORTEST_SECRET);
  // As a log line and an address hold it.
  const forms = (texts as string[]).flatMap((text) => [
    text,
    JSON.stringify(text).slice(1, -1),
    encodeURIComponent(text),
  ]);
  for (const name of names) hidden.names.add(name);
  hidden.values = [...new Set([...hidden.values, ...forms])].sort((one, other) => other.length - one.length);
}

/** Whether a field or a variable of this name holds a secret. */
export function hasSecretName(name: string): boolean {
  return SECRET_NAME.test(name) || hidden.names.has(name);
}

/** Blanks the fork's secrets, and nothing else. */
export function blankSecrets(text: string): string {
  return hidden.values.reduce((rest, secret) => rest.replaceAll(secret, REDACTED), text);
}

/**
 * Blanks credentials in a text from the service, a library or the handler: `Bearer …` and `Basic …`, passwords in URLs,
 * OAuth's parameters, runs of 20 or more token characters that mix letters and digits, and the fork's secrets.
 * Redact before you cut: half a token looks like a word.
 *
 * @param isId keeps the runs: an id may look like a token
 */
export function redact(text: string, isId = false): string {
  const rest = blankSecrets(text)
    .slice(0, LONGEST_TEXT)
    .replace(CREDENTIALS, `$1 ${REDACTED}`)
    .replace(USER_INFO, `://${REDACTED}@`)
    .replace(PARAMETERS, `$1$2${REDACTED}`);
  if (isId) return rest;
  return rest.replace(LONG_RUN, (run) => (MIXED.test(run) && !INSTANCE_ID.test(run) ? REDACTED : run));
}
