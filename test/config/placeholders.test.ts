import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isPlaceholder, isRandomKey, isTypedKey } from '../../src/config/placeholders.ts';
import { loadConfig } from '../../src/config.ts';
import { SANDBOX_DEFAULTS } from '../../src/contract/sandbox.ts';
import { tempDir } from '../support/temp-dir.ts';

/** Bytes that look random, and are the same in every run of the tests. */
const bytes = (seed: number): Buffer => createHash('sha256').update(`placeholder ${seed}`).digest();

const PRODUCTION = {
  NODE_ENV: 'production',
  SERVICE_API_URL: 'https://api.example.com',
  SERVICE_AUTH_URL: 'https://auth.example.com',
  CLIENT_ID: 'client',
  CLIENT_SECRET: 'what the service gave',
  PUBLIC_URL: 'https://app.example.com',
  DATABASE_URL: 'file:/var/lib/partner-app/app.db',
  REDIS_URL: 'redis://redis:6379',
  SESSION_SECRET: bytes(1).toString('base64url'),
  OPERATOR_PASSWORD: bytes(2).toString('base64url'),
  TOKEN_KEYS: `a:${bytes(3).toString('base64')}`,
};

const load = (env: Record<string, string>) => () => loadConfig(env, { dataDir: tempDir() });

describe('in production a placeholder is no secret', () => {
  it.each([
    'changeme-please',
    'password1234',
    'P@ssw0rd-P@ssw0rd',
    'change-me-in-production',
    'Change_This_Before_Use_9',
    'your-password-here',
    'your-session-secret-of-32-characters',
    'changeme-changeme-changeme-changeme',
    'please-change-this-session-secret-now',
    'keyboard cat keyboard cat keyboard cat',
    'generate-me-with-openssl-rand-base64-48',
    'development-only-do-not-use-in-production',
    'yoursessionsecretgoeshereatleast32chars',
  ])('as %s is one', (secret) => {
    const [session, operator] = ['openssl rand -base64 48', 'openssl rand -base64 24'];
    const env = { ...PRODUCTION, OPERATOR_PASSWORD: secret };
    expect(load(env)).toThrow(`OPERATOR_PASSWORD is a placeholder, not a secret: make one with ${operator}`);
    const long = { ...PRODUCTION, SESSION_SECRET: Array(4).fill(secret).join('-') };
    expect(load(long)).toThrow(`SESSION_SECRET is a placeholder, not a secret: make one with ${session}`);
    expect(load({ OPERATOR_PASSWORD: secret })).not.toThrow();
  });

  it.each([
    'correct horse battery staple',
    'the password of an operator',
    'exchanges of yourselves',
    'kFz8/secretN+0changedX/2qYwWm7Lr9TtPbA',
    '3f1c9a7e5b2d4860',
  ])('and what only looks like one is taken: %s', (secret) => {
    expect(load({ ...PRODUCTION, OPERATOR_PASSWORD: secret })).not.toThrow();
  });

  it('nor is any random text taken for one', () => {
    const forms = ['base64', 'base64url', 'hex'] as const;
    for (let seed = 0; seed < 20_000; seed++) {
      for (const form of forms) {
        const text = bytes(seed).toString(form);
        expect(isPlaceholder(text), text).toBe(false);
      }
      expect(isTypedKey(bytes(seed))).toBe(false);
      expect(isRandomKey(bytes(seed)), bytes(seed).toString('base64')).toBe(true);
    }
  });
});

describe('in production a client secret', () => {
  it.each([
    ['no placeholder', 'change-me', 'is a placeholder'],
    ['nobody’s own', 'your-secret', 'is a placeholder'],
    ['not left to be filled in', '<your client secret>', 'is a placeholder'],
    ['not what its own error shows', 'the-client-secret-of-your-oauth-application', 'is a placeholder'],
    ['not the sandbox’s', SANDBOX_DEFAULTS.clientSecret, 'is the sandbox'],
  ])('is %s, and it says where the right one is', (_, secret, problem) => {
    const env = { ...PRODUCTION, CLIENT_SECRET: secret };
    expect(load(env)).toThrow(`CLIENT_SECRET ${problem}`);
    expect(load(env)).toThrow('set the one that the service shows for your OAuth application');
    expect(load({ CLIENT_ID: 'client', CLIENT_SECRET: secret })).not.toThrow();
  });

  it.each(['secret', 'client-secret', 'p:a+s%s/w o&r=d?ü€'])(
    'may be whatever a service gives: %s',
    (secret) => {
      expect(load({ ...PRODUCTION, CLIENT_SECRET: secret })).not.toThrow();
    },
  );
});

/** A key of bytes that count on by `step`, round from 255 to 0. */
function row(first: number, step: number): Buffer {
  return Buffer.from(Array.from({ length: 32 }, (_, index) => first + step * index));
}

/** A key whose text in Base64 was typed. */
function typed(text: string): Buffer {
  return Buffer.from(text, 'base64');
}

describe('in production a key that encrypts', () => {
  it.each([
    ['no pattern', Buffer.from('0123456789abcdef0123456789abcdef')],
    ['no text', Buffer.from('my super secret token key 12345\n')],
    ['no row of numbers', Buffer.from([...Array(32).keys()])],
    ['no row of higher numbers', row(200, 1)],
    ['no row that goes down', row(255, -1)],
    ['no row of steps', row(3, 8)],
    [
      'no two rows, one after the other',
      Buffer.concat([row(200, 1), row(90, -3)].map((r) => r.subarray(16))),
    ],
    ['no bytes of a few kinds', Buffer.from(bytes(4).map((byte) => bytes(5)[byte % 16] ?? 0))],
    ['no text of many letters', Buffer.from('Pack my box with 5 dozen jugs, 9')],
    [
      'no placeholder among random letters',
      typed(
        bytes(6)
          .toString('base64')
          .replace(/^(.{18}).{8}/, '$1changeme'),
      ),
    ],
    ['no placeholder in Base64', typed('changeme/your+secret/placeholder/token+keyA')],
    ['no placeholder in camel case', typed('ChangeMeYourSecretTokenKeyPlaceholder20262g')],
    ['no alphabet', typed('abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQ')],
    ['no words in Base64', typed('ThisIsMyCompanysVeryLongTypedTokenKey/2026A')],
    ['no words in capitals', typed('THISISMYCOMPANYSVERYLONGTYPEDTOKENKEY/2026A')],
  ])('is %s, and it says what to do', (_, bytes32) => {
    const key = bytes32.toString('base64');
    const env = { ...PRODUCTION, TOKEN_KEYS: `old:${key}` };
    expect(load(env)).toThrow(/TOKEN_KEYS holds a key "old" that is not random: make one with npm run keys/);
    expect(load(env)).not.toThrow(key);
    expect(load({ TOKEN_KEYS: env.TOKEN_KEYS })).not.toThrow();
  });
});
