import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test, vi } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

// Many processes start: on a machine that has other work, that takes its time.
vi.setConfig({ testTimeout: 120_000 });

const KEY = randomBytes(32).toString('base64');

function production(dir: string, tokenKeys: string): Record<string, string> {
  return {
    NODE_ENV: 'production',
    SERVICE_API_URL: 'https://api.example.com',
    SERVICE_AUTH_URL: 'https://auth.example.com',
    CLIENT_ID: 'id',
    CLIENT_SECRET: 'client-secret',
    PUBLIC_URL: 'https://app.example.com',
    REDIS_URL: 'redis://127.0.0.1:9',
    SESSION_SECRET: randomBytes(48).toString('base64'),
    DATABASE_URL: `file:${dir}/data/app.db`,
    TOKEN_KEYS: tokenKeys,
  };
}

const WRONG: [string, string, RegExp][] = [
  ['no key', '', /TOKEN_KEYS is needed in production/],
  ['a short key', `a:${randomBytes(16).toString('base64')}`, /TOKEN_KEYS .*a key of 16 bytes, 32 are needed/],
  ['an id twice', `a:${KEY},a:${randomBytes(32).toString('base64')}`, /TOKEN_KEYS must not use an id twice/],
  ['a key twice', `a:${KEY},b:${KEY}`, /TOKEN_KEYS must not contain a key twice/],
  [
    'a key of zeros',
    `a:${Buffer.alloc(32).toString('base64')}`,
    /TOKEN_KEYS holds a key "a" that is not random/,
  ],
];

test.each(WRONG)(
  'with %s in production nothing starts, and it says why',
  async (_what, tokenKeys, message) => {
    const entries = ['src/web.ts', 'src/worker.ts', 'src/start.ts', 'src/reencrypt.ts'];
    const starts = entries.map(async (entry) => {
      const dir = tempDir();
      const started = spawnEntry(entry, production(dir, tokenKeys), { cwd: dir });
      expect((await started.exited).code, entry).toBe(1);
      expect(started.output(), entry).toMatch(message);
      expect(started.output(), entry).not.toContain(KEY);
      expect(existsSync(join(dir, 'data')), entry).toBe(false);
      expect(existsSync(join(dir, '.data')), entry).toBe(false);
    });
    await Promise.all(starts);
  },
);

test('the command for keys prints a value that production takes, and puts the next key in front of it', async () => {
  const first = spawnEntry('src/keys.ts', { NODE_ENV: 'production' });
  expect((await first.exited).code, first.output()).toBe(0);
  const value = /^TOKEN_KEYS=(\S+)$/m.exec(first.output())?.[1] ?? '';
  expect(first.output()).toMatch(/Keep a copy of it away from the database/);

  const dir = tempDir();
  const environment = production(dir, value);
  await (await openDatabase(environment.DATABASE_URL ?? '')).destroy();
  const taken = spawnEntry('src/reencrypt.ts', environment, { cwd: dir });
  expect((await taken.exited).code, taken.output()).toBe(0);

  const second = spawnEntry('src/keys.ts', { NODE_ENV: 'production', TOKEN_KEYS: value });
  expect((await second.exited).code).toBe(0);
  expect(second.output()).toMatch(/^TOKEN_KEYS=(\S+)$/m);
  const next = /^TOKEN_KEYS=(\S+)$/m.exec(second.output())?.[1] ?? '';
  expect(next.endsWith(`,${value}`)).toBe(true);
  expect(second.output()).toContain('npm run reencrypt');
});

test('the command for keys does not pass over keys that are wrong', async () => {
  const started = spawnEntry('src/keys.ts', { TOKEN_KEYS: `a:${KEY},b:${KEY}` });
  expect((await started.exited).code).toBe(1);
  expect(started.output()).toMatch(/a key twice/);
  expect(started.output()).not.toContain(KEY);
});
