import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KnownSecrets } from '../../src/runtime/logging/known-secrets.ts';
import { createLogger, hideSecrets, rememberSecret } from '../../src/runtime/logging.ts';
import { formsOf } from '../trust/canaries.ts';

const anySecret = fc.string({ unit: 'grapheme-ascii', minLength: 16, maxLength: 80 });
const anyText = fc.string({ maxLength: 40 });

test('a known secret is left out of any text, in any form but that of HTML', () => {
  fc.assert(
    fc.property(anySecret, anyText, anyText, (secret, before, after) => {
      const secrets = new KnownSecrets();
      secrets.add(secret);
      for (const [form, text] of formsOf(secret)) {
        if (form === 'HTML-escaped') continue;
        expect(secrets.hide(`${before}${text}${after}`), form).not.toContain(text);
      }
    }),
  );
});

test('texts without a secret stay as they are', () => {
  fc.assert(
    fc.property(fc.string({ maxLength: 200 }), (text) => {
      const secrets = new KnownSecrets();
      secrets.add(randomBytes(16).toString('hex'));
      expect(secrets.hide(text)).toBe(text);
    }),
  );
});

test('several in a text are left out, one that is cut off too', () => {
  const secrets = new KnownSecrets();
  const [one, other] = ['at_0123456789abcdef', 'at_fedcba9876543210'];
  for (const secret of [one, other]) secrets.add(secret);
  expect(secrets.hide(`${one}, ${other}${one}; ${other.slice(0, 14)}`)).toBe(
    '[redacted], [redacted][redacted]; [redacted]',
  );
});

test('the number of them is bounded: that which was used least lately is forgotten', () => {
  const secrets = new KnownSecrets(2);
  const [first, second, third] = ['first-secret-0', 'second-secret-0', 'third-secret-0'];
  for (const secret of [first, second, first, third]) secrets.add(secret);
  expect(secrets.hide(`${first} ${second} ${third}`)).toBe(`[redacted] ${second} [redacted]`);
});

test('short texts are no secrets', () => {
  const secrets = new KnownSecrets();
  secrets.add('password');
  expect(secrets.hide('the password is wrong')).toBe('the password is wrong');
});

test('the log leaves out what is known, wherever it stands', () => {
  const secret = `sk_${randomBytes(24).toString('base64url')}`;
  rememberSecret(secret);
  const lines: string[] = [];
  const destination = { write: (line: string) => void lines.push(line) };
  const logger = createLogger({ logLevel: 'trace', production: true }, { destination });
  const error = new Error(`refused: ${secret}`, { cause: new Error(Buffer.from(secret).toString('base64')) });
  logger.trace({ err: error, note: `for ${secret}` }, `tried ${secret}`);
  const written = lines.join('');
  expect(written).toContain('tried [redacted]');
  for (const text of formsOf(secret).values()) expect(written).not.toContain(text);
  expect(JSON.parse(written)).toMatchObject({ level: 'trace', note: 'for [redacted]' });
  expect(hideSecrets(`with ${secret}, Bearer abcdefghijk`)).toBe('with [redacted], Bearer [redacted]');
});
