import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, expect, it } from 'vitest';
import { EnvFileError, loadEnvFile } from '../../src/contract/env-file.ts';
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
  expect(() => loadEnvFile(dir)).toThrow(EnvFileError);
});

it('takes a file with a byte order mark, and says of one in UTF-16 how to save it', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, '\uFEFFENV_FILE_TEST_A=first\r\nENV_FILE_TEST_B=second\r\n');
  loadEnvFile(path);
  expect(NAMES.map((name) => process.env[name])).toEqual(['first', 'second']);
  writeFileSync(path, '\uFEFFENV_FILE_TEST_A=first\n', 'utf16le');
  expect(() => loadEnvFile(path)).toThrow(/UTF-8/);
});
