/**
 * JSON as a string whose characters are the bytes of its UTF-8 form, one each (0 to 255). Texts of that kind are put
 * together like any other, take one byte a character, and go to the socket as they are: what is the same in a thousand
 * records is encoded once.
 */
export type JsonBytes = string;

/** The value's JSON. */
export function jsonBytes(value: unknown): JsonBytes {
  return Buffer.from(JSON.stringify(value), 'utf8').toString('latin1');
}

/** What stands between the quotes in the text's JSON. */
export function innerBytes(text: string): JsonBytes {
  return jsonBytes(text).slice(1, -1);
}

/** A value that is in many records, with its JSON. */
export interface Encoded<T> {
  readonly value: T;
  readonly json: JsonBytes;
}

/** Encodes what records choose from. */
export function encodeAll<T>(values: readonly T[]): readonly Encoded<T>[] {
  return values.map((value) => ({ value, json: jsonBytes(value) }));
}

/** What stands behind the whole number: `''`, `'.5'`, `'.12'`, at the place of its digits, up to `10 ** digits`. */
function fractions(digits: number): readonly string[] {
  return Array.from({ length: 10 ** digits }, (_, part) => String(part / 10 ** digits).slice(1));
}

const THOUSANDTHS = fractions(3);
const HUNDREDTHS = fractions(2);

/** The JSON of `wholes + thousandths / 1000`, several times quicker than the number is written. */
export function thousandthsBytes(wholes: number, thousandths: number): JsonBytes {
  return `${wholes + Math.floor(thousandths / 1000)}${THOUSANDTHS[thousandths % 1000]}`;
}

/** The JSON of `hundredths / 100`. */
export function hundredthsBytes(hundredths: number): JsonBytes {
  return `${Math.floor(hundredths / 100)}${HUNDREDTHS[hundredths % 100]}`;
}
