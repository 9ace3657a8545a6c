import { isSecret, REDACTED } from './secret-names.ts';

// Texts of strangers come by here: each pattern passes over any text in a time that grows with its length alone. So no
// name is longer than a secret's, and what may be long begins at one place only of whatever stands there in a row.

/** `"name":"value"` of JSON, and of JSON inside a JSON text, where the quotes are escaped; a text may be cut off. */
const JSON_MEMBER = /"([\w-]{1,64})"\s*:\s*"((?:[^"\\]|\\.)*)(?:"|\\?$)/g;
const QUOTED_JSON_MEMBER = /\\"([\w-]{1,64})\\"\s*:\s*\\"([^"\\]*)\\"/g;
/** `name=value` of queries and forms. */
const PARAMETER = /(?<![\w-])([\w-]{1,64})=([^\s"'&;,\\]+)/g;
const CREDENTIALS = /\b(Bearer|Basic)\s+[\w.~+/=-]{8,}/gi;
const USER_INFO = /:\/\/[^\s/@"\\]+@/g;

/** Blanks what looks like a credential in running text: a message, a stack, a line of the log. */
export function redactText(text: string): string {
  return text
    .replace(JSON_MEMBER, (all: string, name: string, value: string) =>
      isSecret(name, value) ? `"${name}":"${REDACTED}"` : all,
    )
    .replace(QUOTED_JSON_MEMBER, (all: string, name: string, value: string) =>
      isSecret(name, value) ? `\\"${name}\\":\\"${REDACTED}\\"` : all,
    )
    .replace(PARAMETER, (all: string, name: string, value: string) =>
      isSecret(name, value) ? `${name}=${REDACTED}` : all,
    )
    .replace(CREDENTIALS, `$1 ${REDACTED}`)
    .replace(USER_INFO, `://${REDACTED}@`);
}
