import { createHash } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { isPlaceholder, isTypedKey } from '../../src/config/placeholders.ts';
import { loadConfig } from '../../src/config.ts';
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
    }
  });
});

describe('in production a key that encrypts', () => {
  it.each([
    ['no pattern', Buffer.from('0123456789abcdef0123456789abcdef')],
    ['no text', Buffer.from('my super secret token key 12345\n')],
    ['no row of numbers', Buffer.from([...Array(32).keys()])],
  ])('is %s, and it says what to do', (_, bytes32) => {
    const key = bytes32.toString('base64');
    const env = { ...PRODUCTION, TOKEN_KEYS: `old:${key}` };
    expect(load(env)).toThrow(/TOKEN_KEYS holds a key "old" that is not random: make one with npm run keys/);
    expect(load(env)).not.toThrow(key);
    expect(load({ TOKEN_KEYS: env.TOKEN_KEYS })).not.toThrow();
  });
});
