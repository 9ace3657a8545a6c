import { randomBytes } from 'node:crypto';
import { existsSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { VARIABLES } from '../../src/config/variables.ts';
import { ConfigError, loadConfig, withNewTokenKey } from '../../src/config.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

const NOW = Date.UTC(2026, 2, 1);

test('a first key stands alone, and the configuration takes it', () => {
  const { value, id, olderIds } = withNewTokenKey({}, tempDir(), NOW);
  expect(id).toMatch(/^2026-03-01-[0-9a-f]{6}$/);
  expect(olderIds).toEqual([]);
  const { tokenKeys } = loadConfig({ TOKEN_KEYS: value }, { dataDir: tempDir() });
  expect(tokenKeys.map((key) => [key.id, key.key.length])).toEqual([[id, 32]]);
  expect(withNewTokenKey({}, tempDir(), NOW).value).not.toBe(value);
});

test('a new key goes in front of those in use, which stay as they are', () => {
  const older = `b:${randomBytes(32).toString('base64')},a:${randomBytes(32).toString('base64')}`;
  const { value, id, olderIds } = withNewTokenKey({ TOKEN_KEYS: older }, tempDir(), NOW);
  expect(olderIds).toEqual(['b', 'a']);
  expect(value.startsWith(`${id}:`)).toBe(true);
  expect(value.endsWith(`,${older}`)).toBe(true);
});

test('in development the keys in use are those that the app has made for itself; none are made for it', () => {
  const dataDir = tempDir();
  expect(withNewTokenKey({}, dataDir, NOW).olderIds).toEqual([]);
  expect(existsSync(join(dataDir, 'token-keys'))).toBe(false);
  const { tokenKeys } = loadConfig({}, { dataDir });
  const { value } = withNewTokenKey({}, dataDir, NOW);
  const [inUse] = tokenKeys;
  expect(value.endsWith(`,${inUse?.id}:${inUse?.key.toString('base64')}`)).toBe(true);
  expect(withNewTokenKey({ NODE_ENV: 'production' }, dataDir, NOW).olderIds).toEqual([]);
});

test('keys in use that are wrong are not passed over', () => {
  const make = () => withNewTokenKey({ TOKEN_KEYS: 'a:short' }, tempDir(), NOW);
  expect(make).toThrow(ConfigError);
  // Nor is whoever reads that sent back to the same command.
  expect(make).toThrow(/put the keys in use right, or leave it empty if there are none yet/);
  expect(make).not.toThrow(/npm run keys/);
});

test('the example of an error about keys is the rest of the line that npm run keys prints', async () => {
  const [, before = 'nothing'] =
    /^<what npm run keys prints behind (.*)>$/.exec(VARIABLES.TOKEN_KEYS.example) ?? [];
  const command = spawnEntry('src/cli.ts', { NODE_ENV: 'production' }, { args: ['keys'] });
  const [, value = ''] = await command.waitForOutput(new RegExp(`^${before}(.*)$`, 'm'));
  expect(loadConfig({ TOKEN_KEYS: value }, { dataDir: tempDir() }).tokenKeys).toHaveLength(1);
});
