import { expect, test } from 'vitest';
import { refusalOf } from '../../src/service/errors.ts';
import type { Headers } from '../../src/service/http.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);

function refuse(status: number, headers: Headers = {}, body = '') {
  return refusalOf({ status, headers, body }, NOW, 'abc/def.ghi');
}

/** An error's body (Errors). */
const error = (message: unknown) =>
  JSON.stringify({ _error: { status: 429, title: 'Too many requests', message } });

test.each([200, 201, 204, 299])('%d refuses nothing', (status) => {
  expect(refuse(status)).toBeUndefined();
});

test.each([
  [206, 'wait'],
  [301, 'give_up'],
  [307, 'give_up'],
  [400, 'give_up'],
  [401, 'refresh'],
  [403, 'give_up'],
  [404, 'give_up'],
  [408, 'wait'],
  [422, 'give_up'],
  [425, 'wait'],
  [429, 'wait'],
  [500, 'wait'],
  [503, 'wait'],
  [599, 'wait'],
] as const)('the remedy of %d is %s', (status, remedy) => {
  const refusal = refuse(status);
  expect(refusal).toMatchObject({ remedy, status });
  expect(refusal?.message).toContain(String(status));
});

const WINDOW = {
  'x-ratelimit-limit': '120',
  'x-ratelimit-remaining': '0',
  'x-ratelimit-reset': String(NOW / 1_000 + 20.5),
};
const GUARD = { 'x-service-tier': 'search' };

test.each<[string, Headers, string, number]>([
  ['retry-after', { ...WINDOW, 'retry-after': '1.5' }, error('Retry in 23400 ms.'), 1_500],
  ['its message', { ...WINDOW, 'retry-after': 'soon' }, error('Retry in 23400 milliseconds.'), 23_400],
  ['the end of the window', WINDOW, '', 20_500],
  ['five seconds, if it says nothing', {}, error(23_400), 5_000],
  ['five seconds, if it is no JSON', {}, 'Retry in 23400 ms', 5_000],
  ['a quarter of an hour at most', { 'retry-after': '7200' }, '', 15 * 60_000],
  ['two hours, if a guard says so', { ...GUARD, 'retry-after': '7200' }, '', 7_200_000],
  ['two hours, if a guard’s message says so', GUARD, error('Retry in 7200000 ms.'), 7_200_000],
  ['a day at most, if a guard says more', { ...GUARD, 'retry-after': '1e300' }, '', 24 * 60 * 60_000],
])('a 429 waits for %s', (_what, headers, body, expected) => {
  expect(refuse(429, headers, body)?.retryAfterMs).toBe(expected);
});

test.each([301, 307, 403, 409, 423, 503])('the retry-after of a %d counts', (status) => {
  expect(refuse(status, { 'retry-after': '2' })).toMatchObject({ status, retryAfterMs: 2_000 });
  expect(refuse(status)?.retryAfterMs).toBeUndefined();
});

test('a 401 blocks nothing, because it is about the token alone', () => {
  expect(refuse(401, { 'retry-after': '30' })?.retryAfterMs).toBeUndefined();
});

test('the service’s message is quoted on one line, cut, and without secrets', () => {
  const words = `The token abc/def.ghi\n\tis bad. ${'word '.repeat(30)}${'x'.repeat(500)}`;
  const message = refuse(403, {}, error(`Bearer A1b2C3d4E5f6G7h8I9j0 ${words}`))?.message;
  expect(message).toMatch(/: Bearer \[redacted\] The token \[redacted\] is bad\. word (?:word )+x+\)\.$/);
  expect(message?.length).toBeLessThan(300);
});

test.each(['', 'null', '[]', '{"_error":null}', '{"_error":{"message":7}}', '<h1>no</h1>'])(
  'a body of %j has no message to quote',
  (body) => {
    expect(refuse(403, {}, body)?.message).toBe('The service refused the request (403).');
  },
);
