import { execFile } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { Redis } from 'ioredis';
import { afterAll, expect, test } from 'vitest';
import { startTestRedis } from '../support/test-redis.ts';

const ROOT = join(import.meta.dirname, '../..');
const PAGE = readFileSync(join(ROOT, 'docs/operations.md'), 'utf8');

/** As people have it: no user, and a password. */
const { url } = await startTestRedis();
const redis = new Redis(url);
afterAll(() => redis.quit());

function endSessions(REDIS_URL: string): Promise<{ stdout: string }> {
  const [, command] = /End all browser sessions:\n\n +```sh\n([\s\S]*?)\n +```/.exec(PAGE) ?? [];
  if (command === undefined) throw new Error('The page does not say how.');
  return promisify(execFile)('sh', ['-c', command], { cwd: ROOT, env: { ...process.env, REDIS_URL } });
}

test('the documented command ends all sessions, and nothing else', async () => {
  expect(new URL(url)).toMatchObject({ username: '', password: expect.stringMatching(/./) });
  await redis.mset(Object.fromEntries(Array.from({ length: 250 }, (_, n) => [`session:${n}`, '{}'])));
  await redis.set('budget:{acme}:state', '{}');
  expect((await endSessions(url)).stdout).toBe('250 sessions ended\n');
  expect(await redis.keys('*')).toEqual(['budget:{acme}:state']);
  expect((await endSessions(url)).stdout).toBe('0 sessions ended\n');
});

test.each<[string, (right: URL) => void]>([
  [
    'a wrong password',
    (address) => {
      address.password = 'wrong';
    },
  ],
  [
    'nobody there',
    (address) => {
      address.port = '1';
    },
  ],
  [
    'a number that this Redis does not have, in whose place there may be sessions of others',
    (address) => {
      address.pathname = '/99';
    },
  ],
])('it fails where it ends none: %s', async (_what, spoil) => {
  const address = new URL(url);
  spoil(address);
  await redis.set('session:kept', '{}');
  await expect(endSessions(address.href)).rejects.toMatchObject({ code: 1, stdout: '' });
  expect(await redis.exists('session:kept')).toBe(1);
});

test('it fails where REDIS_URL is not set, and asks no other Redis', async () => {
  await expect(endSessions('')).rejects.toThrow('REDIS_URL');
});
