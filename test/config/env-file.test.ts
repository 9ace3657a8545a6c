import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { loadEnvFile } from '../../src/config.ts';
import { tempDir } from '../support/temp-dir.ts';

const NAMES = ['ENV_FILE_TEST_A', 'ENV_FILE_TEST_B'];

afterEach(() => {
  for (const name of NAMES) delete process.env[name];
});

it('fills in what is not set yet', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, 'ENV_FILE_TEST_A=file\nENV_FILE_TEST_B="from the file"\n');
  process.env.ENV_FILE_TEST_A = 'real';
  loadEnvFile(path);
  expect(NAMES.map((name) => process.env[name])).toEqual(['real', 'from the file']);
});

it('does without a file, but not with one that it cannot read', () => {
  const dir = tempDir();
  expect(() => loadEnvFile(join(dir, '.env'))).not.toThrow();
  expect(() => loadEnvFile(dir)).toThrow();
});
