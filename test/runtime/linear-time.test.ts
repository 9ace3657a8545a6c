import { randomBytes } from 'node:crypto';
import { expect, test } from 'vitest';
import { hideSecrets, rememberSecret } from '../../src/runtime/logging.ts';

const CHARACTERS = 32_768;

/** What is squared takes a thousand times as long and more; what is not, some ten times at the most. */
const MOST_TIMES = 150;

for (let index = 0; index < 1_000; index++) rememberSecret(`at_${randomBytes(32).toString('base64url')}`);

/** The shortest of some tries, as others may have the processor in between, in milliseconds. */
function fastest(text: string): number {
  const times = Array.from({ length: 5 }, () => {
    const started = performance.now();
    hideSecrets(text);
    return performance.now() - started;
  });
  return Math.min(...times);
}

const long = (unit: string) => unit.repeat(CHARACTERS / unit.length);
const prose = long('The service asked us to slow down, for the 3rd time. ');

// What begins anew at every place, or at every second one, and never gets to its end.
const UNITS = [
  'a-',
  'a.',
  'a_',
  'a',
  'a+',
  '-',
  ' ',
  'Bearer ',
  'a=',
  '://a',
  '"',
  '\\"',
  '\\',
  '"a":',
  '"a":"',
  '"a":"\\',
  '\\"a\\":\\"',
  '"a" ',
  '%',
  '%41',
  '&#',
  '&#65;',
  '&amp;',
  'dead',
  'd:',
  'QUJD',
];

test.each(UNITS)('a long text of %j costs no more than its length', (unit) => {
  expect(fastest(long(unit))).toBeLessThan(MOST_TIMES * fastest(prose));
});

test('nor does one of Base64 digits, or one that is a known secret all over', () => {
  const secret = randomBytes(24).toString('base64url');
  rememberSecret(secret);
  rememberSecret('a'.repeat(64));
  for (const text of [randomBytes(CHARACTERS).toString('base64url'), long(secret), long('a')]) {
    expect(fastest(text)).toBeLessThan(MOST_TIMES * fastest(prose));
  }
});
