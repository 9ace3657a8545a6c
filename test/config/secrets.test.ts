import { readdirSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { loadConfig } from '../../src/config/config.ts';
import { withNewTokenKey } from '../../src/config/secrets.ts';
import { ConfigError, VARIABLES } from '../../src/config/variables.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

const NOW = Date.UTC(2026, 2, 1);

test('development makes its secrets once, for their owner alone', () => {
  const dataDir = join(tempDir(), 'data');
  const first = loadConfig({}, { dataDir });
  expect(loadConfig({}, { dataDir })).toEqual(first);
  expect(first.tokenKeys.map(({ key }) => key.length)).toEqual([32]);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  expect(readdirSync(dataDir).sort()).toEqual(['session-secret', 'token-keys']);
  for (const name of readdirSync(dataDir)) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
  // Or the tokens of one machine would look damaged on another.
  expect(loadConfig({}, { dataDir: tempDir() }).tokenKeys[0]?.id).not.toBe(first.tokenKeys[0]?.id);
});

test('the error names a file that is damaged or cannot be written', () => {
  const dataDir = tempDir();
  writeFileSync(join(dataDir, 'token-keys'), 'half a k');
  expect(() => loadConfig({}, { dataDir })).toThrow(ConfigError);
  expect(() => loadConfig({}, { dataDir })).toThrow(
    `TOKEN_KEYS is not set, and the app cannot keep one in ${dataDir}`,
  );
  expect(() => loadConfig({}, { dataDir: join(dataDir, 'token-keys') })).toThrow(/ENOTDIR|EEXIST/);
});

test('a new key goes in front of the given keys, and takes none of development along', () => {
  const first = withNewTokenKey({}, NOW);
  expect(first).toMatchObject({ id: expect.stringMatching(/^2026-03-01-[0-9a-f]{6}$/), olderIds: [] });
  const second = withNewTokenKey({ TOKEN_KEYS: first.value }, NOW);
  expect(second).toMatchObject({ value: expect.stringContaining(`,${first.value}`), olderIds: [first.id] });
});

test('npm run keys does not print the keys that development made', async () => {
  const cwd = tempDir();
  loadConfig({}, { dataDir: join(cwd, '.data') });
  const command = spawnEntry('src/cli.ts', {}, { args: ['keys'], cwd });
  const [, value = ''] = await command.waitForOutput(/^TOKEN_KEYS=(.*)$/m);
  expect(value).not.toMatch(/dev-|,/);
});

test('a new key needs valid older ones, and the error leads in no circle', () => {
  const make = () => withNewTokenKey({ TOKEN_KEYS: 'a:short' }, NOW);
  expect(make).toThrow(/^ {2}TOKEN_KEYS entry 1 .*\n.*<the keys in use, or nothing>$/m);
  expect(make).not.toThrow(/npm run keys/);
});

test('npm run keys prints a line as the example of TOKEN_KEYS describes it', async () => {
  const [, before = ''] = /^<what npm run keys prints behind (.*)>$/.exec(VARIABLES.TOKEN_KEYS.example) ?? [];
  const command = spawnEntry('src/cli.ts', { NODE_ENV: 'production' }, { args: ['keys'] });
  const [, value = ''] = await command.waitForOutput(new RegExp(`^${before}(.*)$`, 'm'));
  expect(loadConfig({ TOKEN_KEYS: value }, { dataDir: tempDir() }).tokenKeys).toHaveLength(1);
});
