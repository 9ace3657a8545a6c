import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { redact } from '../../src/runtime/redaction.ts';

const TOKEN = `at_${randomBytes(32).toString('hex')}`;
const BASE64 = Buffer.from(`client:${TOKEN}`).toString('base64');

test.each([
  [`You said Bearer ${TOKEN}.`, 'You said Bearer [redacted]'],
  [`You said Basic ${BASE64} again`, 'You said Basic [redacted] again'],
  [`the token ${TOKEN}, or ${BASE64}`, /^the token \[redacted\], or \[redacted\]=*$/],
  [`url-encoded: ${encodeURIComponent(TOKEN)}%3D`, 'url-encoded: [redacted]'],
  ['GET /oauth/callback?code=short&state=short', 'GET /oauth/callback?code=[redacted]&state=[redacted]'],
  ['refresh_token=short&x=1', 'refresh_token=[redacted]&x=1'],
  ['{"access_token": "short"}', '{"access_token": "[redacted]"}'],
  ['{\\"client_secret\\":\\"short\\"}', '{\\"client_secret\\":\\"[redacted]\\"}'],
  ['connect postgres://me:hush@db/app', 'connect postgres://[redacted]@db/app'],
])('blanks the secret in %j', (text, expected) => {
  expect(redact(text)).toMatch(expected);
});

test.each([
  'Basic authentication is wanted, no bearer tokens were given',
  'connect ECONNREFUSED 127.0.0.1:6379 (redis-cluster-1-eu-west-2)',
  'The database lacks 0002-add-customer-tables, and UND_ERR_CONNECT_TIMEOUT came.',
  `ins_${'0a'.repeat(16)} waits for https://api.example.com/contacts?limit=100`,
])('keeps %s', (text) => {
  expect(redact(text)).toBe(text);
});

test('cuts a text of megabytes, and blanks its runs', () => {
  expect(redact('a1'.repeat(5_000_000))).toBe('[redacted]');
  expect(redact('a '.repeat(5_000_000)).length).toBe(100_000);
});
