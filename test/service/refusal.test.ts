import { expect, test } from 'vitest';
import { refusalOf } from '../../src/service/errors.ts';
import type { Headers } from '../../src/service/http.ts';

const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);

function refuse(status: number, headers: Headers = {}, body = '') {
  return refusalOf({ status, headers, body }, NOW, 'abc/def.ghi');
}

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
  [502, 'wait'],
  [503, 'wait'],
  [599, 'wait'],
] as const)('%d: %s', (status, remedy) => {
  const refusal = refuse(status);
  expect(refusal).toMatchObject({ remedy, status });
  expect(refusal?.message).toContain(String(status));
});

test('an answer that repeats the token is quoted without it', () => {
  const message = refuse(400, {}, error('token abc/def.ghi is not good'))?.message;
  expect(message).toContain('token [redacted] is not good');
});

test('429 waits as long as retry-after says, and names the guard', () => {
  expect(refuse(429, { 'retry-after': '1.5' })).toMatchObject({ retryAfterMs: 1_500, tier: undefined });
  expect(refuse(429, { 'retry-after': '1.5', 'x-service-tier': 'search' })).toMatchObject({ tier: 'search' });
});

test('the company’s wait is believed for a quarter of an hour, a guard’s in full', () => {
  expect(refuse(429, { 'retry-after': '7200' })?.retryAfterMs).toBe(15 * 60_000);
  const tier = { 'x-service-tier': 'search' };
  expect(refuse(429, { ...tier, 'retry-after': '7200' })?.retryAfterMs).toBe(7_200_000);
  expect(refuse(429, tier, error('Retry in 7200000 ms.'))?.retryAfterMs).toBe(7_200_000);
  expect(refuse(429, { ...tier, 'retry-after': '1e300' })?.retryAfterMs).toBe(24 * 60 * 60_000);
});

/** A body as the service's errors have it. */
const error = (message: unknown) =>
  JSON.stringify({ _error: { status: 429, title: 'Too many requests', message } });

test('429 without retry-after waits as long as its message says', () => {
  const headers = { 'x-ratelimit-limit': '120', 'x-ratelimit-remaining': '0', 'x-ratelimit-reset': '0' };
  expect(refuse(429, headers, error('Retry in 23400 milliseconds.'))?.retryAfterMs).toBe(23_400);
  expect(refuse(429, { 'retry-after': '1' }, error('Retry in 23400 ms.'))?.retryAfterMs).toBe(1_000);
  expect(refuse(429, { 'retry-after': 'soon' }, error('Retry in 23400 ms.'))?.retryAfterMs).toBe(23_400);
  for (const body of ['', 'Retry in 23400 ms', '[]', error(23_400), error('Retry in 23400 messages')]) {
    expect(refuse(429, {}, body)?.retryAfterMs, body).toBe(5_000);
  }
});

test('429 without retry-after or message waits for the end of the window, or a few seconds', () => {
  const headers = {
    'x-ratelimit-limit': '120',
    'x-ratelimit-remaining': '0',
    'x-ratelimit-reset': String(NOW / 1_000 + 20.5),
  };
  expect(refuse(429, headers)?.retryAfterMs).toBe(20_500);
  expect(refuse(429)?.retryAfterMs).toBe(5_000);
});

test('retry-after as a date is read against the service’s own Date', () => {
  const date = 'Sun, 01 Mar 2026 15:00:00 GMT';
  const headers = { date, 'retry-after': 'Sun, 01 Mar 2026 15:00:07 GMT' };
  expect(refuse(503, headers)?.retryAfterMs).toBe(7_000);
  expect(refuse(503, { 'retry-after': 'Sun, 01 Mar 2026 12:00:09 GMT' })?.retryAfterMs).toBe(9_000);
});

test('5xx without retry-after leaves the pause to us', () => {
  expect(refuse(503)?.retryAfterMs).toBeUndefined();
});

test.each([301, 307, 403, 409, 423, 503])('%d: a wait that is asked for goes along', (status) => {
  expect(refuse(status, { 'retry-after': '2' })).toMatchObject({ status, retryAfterMs: 2_000 });
});

test('401 is about the token alone: it blocks nothing', () => {
  expect(refuse(401, { 'retry-after': '30' })?.retryAfterMs).toBeUndefined();
});

test('the service’s own words go along, on one line and not too long', () => {
  const message = `The scope\n\tis missing. ${'word '.repeat(30)}${'x'.repeat(500)} Bearer A1b2C3d4E5f6G7h8I9j0`;
  const refusal = refuse(403, {}, JSON.stringify({ _error: { status: 403, title: 'Forbidden', message } }));
  expect(refusal?.message).toMatch(/The scope is missing\. word (?:word )+x+\)\.$/);
  expect(refusal?.message).not.toContain('\n');
  expect(refusal?.message.length).toBeLessThan(300);
});

test.each(['', 'null', '[]', '{"_error":null}', '{"_error":{"message":7}}', '<h1>no</h1>'])(
  'a body of %j adds no words',
  (body) => {
    expect(refuse(403, {}, body)?.message).toBe('The service refused the request (403).');
  },
);
