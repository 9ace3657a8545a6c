import { ServiceError } from './errors.ts';
import { stringEnd } from './json-strings.ts';

const QUOTE = 0x22;
const COMMA = 0x2c;
const OPEN_LIST = 0x5b;
const OPEN_OBJECT = 0x7b;

/** Up to this many characters nothing is looked at before it is read: a page of 100 records has some 70 thousand. */
const HARMLESS_LENGTH = 1024 * 1024;

/** What a text of 32 MB may hold would take more than a gigabyte and ten seconds; this many take a fraction of both. */
const MOST_VALUES = 500_000;

/**
 * Reads JSON that came from the service, in bounded time and memory.
 *
 * @param what it is, for the message: "a page"
 * @throws ServiceError to wait on, when it is none, or holds too much
 */
export function readJson(text: string, what: string): unknown {
  if (text.length > HARMLESS_LENGTH) checkStructure(text, what);
  try {
    return JSON.parse(text);
  } catch (error) {
    throw unreadable(what, text === '' ? 'it is empty' : 'it is not JSON', error);
  }
}

/** What an answer is that came, but says nothing that can be used: it may be better the next time. */
export function unreadable(what: string, why: string, cause?: unknown): ServiceError {
  return new ServiceError('wait', `The service sent ${what} that cannot be read: ${why}.`, {
    kind: 'bad_answer',
    cause,
  });
}

/** Counts what JSON.parse would have to make, without making it. */
function checkStructure(text: string, what: string): void {
  let values = 0;
  for (let at = 0; at < text.length; ) {
    const code = text.charCodeAt(at);
    if (code === COMMA || code === OPEN_OBJECT || code === OPEN_LIST) values++;
    at = code === QUOTE ? stringEnd(text, at) : at + 1;
  }
  if (values > MOST_VALUES) throw unreadable(what, `there are more than ${MOST_VALUES} values in it`);
}
