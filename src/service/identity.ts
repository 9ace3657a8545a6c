import { numberText } from '../contract/number-text.ts';
import { readJson, unreadable } from './read-json.ts';
import { repeatsToken } from './repeated-token.ts';

/** Longer ids are no ids, in UTF-16 units: they stand in keys, and on pages where there is no name. */
const LONGEST_ID = 1_000;

/** As much of a name is kept, in UTF-16 units. */
const LONGEST_NAME = 200;

/** What the answer is called in messages. */
const WHAT = 'an answer about the company';

/** The company behind a token. */
export interface Identity {
  id: string;
  name: string | undefined;
}

/**
 * Reads the answer of the identity route.
 *
 * @param accessToken that it was asked with
 * @param givesSecretAway tells a text that holds a secret of the app: an id that does, or holds the access token, is none,
 *   as ids are shown and kept
 * @returns undefined when it is a whole answer that names no id: the service does not tell
 * @throws ServiceError to wait on, when it is none, or its id cannot be used
 */
export function readIdentity(
  body: string,
  accessToken: string,
  givesSecretAway: (text: string) => boolean,
): Identity | undefined {
  const identity = readJson(body, WHAT);
  if (typeof identity !== 'object' || identity === null || Array.isArray(identity)) {
    throw unreadable(WHAT, 'it is no object');
  }
  const { id, name } = identity as { id?: unknown; name?: unknown };
  if (id === undefined || id === null) return undefined;
  const text = readId(typeof id === 'number' ? integerText(body, id) : id);
  if (repeatsToken(text, accessToken)) throw unreadable(WHAT, 'its id holds the access token');
  if (givesSecretAway(text)) throw unreadable(WHAT, 'its id holds a secret of the app');
  return { id: text, name: readName(name) };
}

/** @returns its digits; of another number nothing */
function integerText(body: string, id: number): string | undefined {
  if (Number.isSafeInteger(id)) return String(id);
  const text = numberText(body, id);
  return text !== undefined && /^-?\d+$/.test(text) ? text : undefined;
}

function readId(id: unknown): string {
  if (typeof id !== 'string' || id === '') throw unreadable(WHAT, 'its id is neither a text nor an integer');
  if (id.length > LONGEST_ID) throw unreadable(WHAT, `its id is longer than ${LONGEST_ID} characters`);
  // Two that are no Unicode would become the same instance: bytes that are no UTF-8 are read as U+FFFD.
  if (!id.isWellFormed() || id.includes('\ufffd')) throw unreadable(WHAT, 'its id is no Unicode text');
  return id;
}

function readName(name: unknown): string | undefined {
  const text = typeof name === 'string' ? name.trim() : '';
  return text === '' ? undefined : text.slice(0, LONGEST_NAME).toWellFormed();
}
