import { chmodSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError, loadConfig } from '../../src/config.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

it('generates the secrets once, for their owner alone', () => {
  const dataDir = join(tempDir(), 'data');
  const first = loadConfig({}, { dataDir });
  const second = loadConfig({}, { dataDir });
  expect(second.sessionSecret).toBe(first.sessionSecret);
  expect(second.tokenKeys).toEqual(first.tokenKeys);
  expect(first.sessionSecret.length).toBeGreaterThanOrEqual(32);
  expect(first.tokenKeys.map(({ key }) => key.length)).toEqual([32]);
  expect(statSync(dataDir).mode & 0o777).toBe(0o700);
  expect(readdirSync(dataDir).sort()).toEqual(['session-secret', 'token-keys']);
  for (const name of readdirSync(dataDir)) expect(statSync(join(dataDir, name)).mode & 0o777).toBe(0o600);
});

it('makes others elsewhere', () => {
  const one = loadConfig({}, { dataDir: tempDir() });
  const other = loadConfig({}, { dataDir: tempDir() });
  expect(other.sessionSecret).not.toBe(one.sessionSecret);
  expect(other.tokenKeys).not.toEqual(one.tokenKeys);
  // Or the tokens of one machine would look damaged on the other.
  expect(other.tokenKeys[0]?.id).not.toBe(one.tokenKeys[0]?.id);
});

it('keeps to what is given', () => {
  const dataDir = tempDir();
  const given = 'g'.repeat(32);
  expect(loadConfig({ SESSION_SECRET: given }, { dataDir }).sessionSecret).toBe(given);
  expect(readdirSync(dataDir)).toEqual(['token-keys']);
});

it('says which file is spoiled, and does not overwrite it', () => {
  const dataDir = tempDir();
  const path = join(dataDir, 'token-keys');
  writeFileSync(path, 'half a k');
  expect(() => loadConfig({}, { dataDir })).toThrow(ConfigError);
  expect(() => loadConfig({}, { dataDir })).toThrow(path);
  expect(readFileSync(path, 'utf8')).toBe('half a k');
});

it('says why nothing can be kept', () => {
  const blocked = join(tempDir(), 'file');
  writeFileSync(blocked, '');
  expect(() => loadConfig({}, { dataDir: join(blocked, 'data') })).toThrow(
    /SESSION_SECRET is not set, and cannot/,
  );
});

it('agrees between processes that start at the same time', async () => {
  const cwd = tempDir();
  mkdirSync(join(cwd, '.data'));
  chmodSync(join(cwd, '.data'), 0o700);
  const processes = Array.from({ length: 4 }, () => spawnEntry('test/support/print-secrets.ts', {}, { cwd }));
  const exits = await Promise.all(processes.map(({ exited }) => exited));
  expect(exits.map(({ code }) => code)).toEqual([0, 0, 0, 0]);
  const outputs = new Set(processes.map((entry) => entry.output()));
  expect(outputs.size).toBe(1);
  expect([...outputs].join()).toMatch(/^\S{32,} \S{44}\n$/);
  expect(readdirSync(join(cwd, '.data')).sort()).toEqual(['session-secret', 'token-keys']);
});
