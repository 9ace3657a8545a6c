import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { expect, test } from 'vitest';
import { KnownSecrets } from '../../src/runtime/logging/known-secrets.ts';
import { createLogger, hideSecrets, rememberSecret } from '../../src/runtime/logging.ts';
import { testLogger } from '../support/test-logger.ts';

const anySecret = fc.string({ unit: 'grapheme-ascii', minLength: 16, maxLength: 80 });
const anyText = fc.string({ maxLength: 40 });

test('a known secret is left out of any text, in any form', () => {
  fc.assert(
    fc.property(anySecret, anyText, anyText, (secret, before, after) => {
      const secrets = new KnownSecrets();
      secrets.add(secret);
      for (const [form, text] of formsOf(secret)) {
        expect(secrets.hide(`${before}${text}${after}`), form).not.toContain(text);
      }
    }),
  );
});

/** A token as services make them. */
function newToken(): string {
  return `at_${randomBytes(32).toString('base64url')}`;
}

const everyCharacter = (text: string, write: (code: number) => string) =>
  [...text].map((character) => write(character.charCodeAt(0))).join('');
const base64 = (text: string) => Buffer.from(text).toString('base64');
const hex = (code: number, digits: number) => code.toString(16).padStart(digits, '0');

/** What a text is written as, by somebody who means to be read. */
const WRITINGS: [string, (text: string) => string][] = [
  ['as it is', (text) => text],
  ['with every character as %41', (text) => everyCharacter(text, (code) => `%${hex(code, 2)}`)],
  ['with every character as %2541', (text) => everyCharacter(text, (code) => `%25${hex(code, 2)}`)],
  ['with every character as \\u0041', (text) => everyCharacter(text, (code) => `\\u${hex(code, 4)}`)],
  ['with every character as \\x41', (text) => everyCharacter(text, (code) => `\\x${hex(code, 2)}`)],
  ['with every character as &#65;', (text) => everyCharacter(text, (code) => `&#${code};`)],
  ['with every character as &#x41;', (text) => everyCharacter(text, (code) => `&#x${hex(code, 2)};`)],
  ['in Base64', base64],
  ['in Base64, behind a name', (text) => base64(`Bearer ${text}`)],
  ['in Base64 twice', (text) => base64(base64(text))],
  ['in hexadecimal digits', (text) => Buffer.from(text).toString('hex')],
  ['in such with colons', (text) => everyCharacter(text, (code) => `:${hex(code, 2)}`).slice(1)],
];

test.each(WRITINGS)('a piece of a known token is left out %s, in the log, too', (_how, write) => {
  const token = newToken();
  const secrets = new KnownSecrets();
  secrets.add(token);
  const pieces = Array.from({ length: token.length - 18 }, (_, at) => token.slice(at, at + 19));
  for (const piece of [token, token.slice(3), token.slice(0, 12), token.slice(-12), ...pieces]) {
    const text = `The token is ${write(piece)} (it lacks a scope)`;
    const line = JSON.stringify({ msg: text });
    expect(secrets.hide(text)).toMatch(/^The token is \S{0,12}\[redacted\]\S{0,6} \(it lacks a scope\)$/);
    const { msg } = JSON.parse(secrets.hide(line));
    expect(msg).toMatch(/^The token is \S{0,12}\[redacted\]\S{0,6} \(it lacks a scope\)$/);
  }
});

test('of secrets that begin alike, each is left out to its end, also where one is forgotten', () => {
  const secrets = new KnownSecrets({ most: 50 });
  const start = `eyJ${randomBytes(60).toString('base64url')}.`;
  const tokens = Array.from({ length: 60 }, () => start + newToken());
  for (const token of tokens) secrets.add(token);
  for (const token of tokens.slice(10)) {
    expect(secrets.hide(`x ${token} y`)).toBe('x [redacted] y');
    // No window of its own ends before eight more characters.
    expect(secrets.hide(token.slice(0, -30))).toMatch(/^\[redacted\].{0,7}$/);
  }
});

test('of long secrets longer pieces are found', () => {
  const secrets = new KnownSecrets();
  const token = randomBytes(1_500).toString('base64url');
  secrets.add(token);
  for (const at of [0, 1, 500, 1_900]) {
    expect(secrets.hide(`x ${token.slice(at, at + 80)} y`)).toBe('x [redacted] y');
  }
});

test('thousands are told apart in one pass', () => {
  const secrets = new KnownSecrets();
  const tokens = Array.from({ length: 5_000 }, newToken);
  for (const token of tokens) secrets.add(token);
  expect(secrets.hide(tokens.map((token) => token.slice(5)).join(' '))).toBe(
    tokens.map(() => '[redacted]').join(' '),
  );
});

test('a line of JSON stays one, wherever a piece begins and ends', () => {
  const unit = fc.constantFrom('n', '\n', 'u', '\\', '0', 'a', '4', '\u0001', 'é', '%');
  const anyPart = fc.string({ unit, minLength: 14, maxLength: 40 });
  fc.assert(
    fc.property(anyPart, anyText, fc.nat(20), fc.nat(20), (secret, around, from, less) => {
      const secrets = new KnownSecrets();
      secrets.add(secret);
      const piece = secret.slice(Math.min(from, 2), secret.length - Math.min(less, 2));
      const line = JSON.stringify({ msg: `${around}${piece}${around}\n${piece}\\${piece}"`, ms: 1 });
      expect(JSON.parse(secrets.hide(line))).toMatchObject({ ms: 1 });
    }),
    { numRuns: 1_000 },
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
  const secrets = new KnownSecrets({ most: 2 });
  const [first, second, third] = ['first-secret-0', 'second-secret-0', 'third-secret-0'];
  for (const secret of [first, second, first, third]) secrets.add(secret);
  expect(secrets.hide(`${first} ${second} ${third}`)).toBe(`[redacted] ${second} [redacted]`);
});

test('so is what they take: long ones make room sooner, and the newest is kept however long it is', () => {
  const secrets = new KnownSecrets({ mostBytes: 100_000 });
  const long = () => randomBytes(9_000).toString('base64url');
  const [first, second, ...others] = Array.from({ length: 5 }, long);
  for (const secret of [first ?? '', second ?? '', first ?? '', ...others]) secrets.add(secret);
  expect(secrets.hide(others.join(' '))).toBe('[redacted] [redacted] [redacted]');
  expect(secrets.hide(`${second}`)).toBe(second);
  const huge = randomBytes(90_000).toString('base64url');
  secrets.add(huge);
  expect(secrets.hide(huge)).toBe('[redacted]');
  expect(secrets.hide(others.join(' '))).toBe(others.join(' '));
});

test('what is pinned is known for good, however many come later', () => {
  const secrets = new KnownSecrets({ most: 2, mostBytes: 2_000 });
  const [pinned, added] = [newToken(), newToken()];
  secrets.add(added);
  for (const secret of [pinned, added]) secrets.pin(secret);
  for (let index = 0; index < 10; index++) secrets.add(newToken());
  secrets.add(pinned);
  expect(secrets.hide(`${pinned} ${added}`)).toBe('[redacted] [redacted]');
});

/** A part, by how much of the token stands in front of it and behind it. */
const part = (from: number, to?: number) => (token: string) => token.slice(from, to);

test.each([
  ...WRITINGS,
  ['all but its last 21 characters', part(0, -21)],
  ['all but its first 21 characters', part(21)],
  ['all but 21 characters around it', part(10, -11)],
])('what gives a known token away is told: %s', (_how, write) => {
  const secrets = new KnownSecrets();
  const tokens = Array.from({ length: 10 }, () => `eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.${newToken()}`);
  for (const token of tokens) secrets.add(token);
  for (const token of tokens) {
    expect(secrets.givesAway(write(token))).toBe(true);
    expect(secrets.givesAway(`https://api.example/v1/contacts?page=2&after=${write(token)}-2`)).toBe(true);
  }
});

test('what texts have in common with a secret by chance or by its form does not give it away', () => {
  const secrets = new KnownSecrets();
  const company = 'cmp_7c9e6679-7425-40de-944b-e07fc1f90ae7';
  const head = 'eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9.eyJpc3MiOiJodHRwczovL2F1dGguZXhhbXBsZSJ9';
  const known = [`${company}.${newToken()}`, `${head}.${newToken()}`, 'partner-app-secret', 'pw'];
  for (const secret of known) secrets.add(secret);
  for (const text of [company, `${head}.${newToken()}`, 'partner-app-1', 'pw', newToken(), '']) {
    expect(secrets.givesAway(text)).toBe(false);
  }
  expect(secrets.givesAway('x partner-app-secret')).toBe(true);
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

test('a line of the log is one JSON object, and what the app says in it stays, whatever the secrets are', () => {
  const { logger, lines } = testLogger();
  const secrets = [
    '"level":"info","time":"',
    '"path":"/instances',
    '"msg":"request"}',
    '","requestId":"',
    'd":1234567890123,"',
    '1234567890123',
    '\\\\\\\\\\\\\\\\\\\\\\\\',
    '""""""""""""',
    '}}}}}}}}}}}}',
  ];
  for (const secret of secrets) rememberSecret(secret);
  const said = { path: '/instances/ins_1', requestId: 'id-1', id: 1_234_567_890_123 };
  logger.info(said, 'request');
  expect(lines).toEqual([{ level: 'info', time: expect.any(String), ...said, msg: 'request' }]);
  for (const secret of secrets)
    logger.warn({ said, [secret]: [secret], quoted: JSON.stringify({ secret }) }, secret);
  expect(lines).toHaveLength(1 + secrets.length);
  for (const line of lines.slice(1)) {
    expect(line).toMatchObject({ level: 'warn', said, '[redacted]': ['[redacted]'], msg: '[redacted]' });
  }
});

test('a secret of one text’s affair is left out of that text alone', () => {
  const own = newToken();
  const text = `with ${own.slice(0, 20)} and ${Buffer.from(own).toString('base64')}`;
  expect(hideSecrets(text, own)).toMatch(/^with \[redacted\] and \[redacted\]=*$/);
  expect(hideSecrets(text)).toBe(text);
});

/** A text in its forms, by name; those that look like a form before are left out. */
function formsOf(value: string): Map<string, string> {
  const bytes = Buffer.from(value, 'utf8');
  const forms: [string, string][] = [
    ['plain', value],
    ['URL-encoded', encodeURIComponent(value)],
    ['as a form', new URLSearchParams({ x: value }).toString().slice(2)],
    ['JSON-escaped', JSON.stringify(value).slice(1, -1)],
    ['JSON-escaped twice', JSON.stringify(JSON.stringify(value)).slice(3, -3)],
    [
      'HTML-escaped',
      value
        .replace(/&/g, '&amp;')
        .replace(/</g, '&lt;')
        .replace(/>/g, '&gt;')
        .replace(/"/g, '&quot;')
        .replace(/'/g, '&#39;'),
    ],
    ['in hex', bytes.toString('hex')],
    ['in capital hex', bytes.toString('hex').toUpperCase()],
  ];
  // Inside of a longer text that was encoded as a whole (`Basic <id:secret>`) it begins at any of three places.
  for (const offset of [0, 1, 2]) {
    const characters = Buffer.concat([Buffer.alloc(offset), bytes])
      .toString('base64')
      .replace(/=+$/, '');
    const whole = Math.floor(((offset + bytes.length) * 8) / 6);
    const core = characters.slice([0, 2, 3][offset], whole);
    forms.push(
      [`in Base64 (${offset})`, core],
      [`in base64url (${offset})`, core.replaceAll('+', '-').replaceAll('/', '_')],
    );
  }
  const unique = new Map<string, string>();
  for (const [form, needle] of forms) {
    if (![...unique.values()].includes(needle)) unique.set(form, needle);
  }
  return unique;
}
