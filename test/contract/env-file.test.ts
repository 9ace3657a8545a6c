import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { loadEnvFile } from '../../src/contract/env-file.ts';
import { tempDir } from '../support/temp-dir.ts';

it('fills in what is not set yet', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, 'A=file\nB="from the file"\nC=file\n');
  const env = { A: 'real', C: '' };
  loadEnvFile(env, path);
  expect(env).toEqual({ A: 'real', B: 'from the file', C: '' });
});

it('does without a file, but not with one that it cannot read', () => {
  const dir = tempDir();
  expect(() => loadEnvFile({}, join(dir, '.env'))).not.toThrow();
  expect(() => loadEnvFile({}, dir)).toThrow(/is a directory/);
});

it('takes a file with a byte order mark, and says of one in UTF-16 how to save it', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, '\uFEFFA=first\r\nB=second\r\n');
  const env = {};
  loadEnvFile(env, path);
  expect(env).toEqual({ A: 'first', B: 'second' });
  writeFileSync(path, '\uFEFFA=first\n', 'utf16le');
  expect(() => loadEnvFile({}, path)).toThrow(/UTF-8/);
});

it('refuses a file with what Node has read before it, unless the environment has it, too', () => {
  const path = join(tempDir(), '.env');
  writeFileSync(path, 'NODE_ENV=test\nNODE_EXTRA_CA_CERTS=/ca.pem\n');
  expect(() => loadEnvFile({}, path)).toThrow(
    /NODE_EXTRA_CA_CERTS, which Node reads before it: set it where/,
  );
  const env: NodeJS.ProcessEnv = { NODE_EXTRA_CA_CERTS: '/ca.pem' };
  loadEnvFile(env, path);
  expect(env).toEqual({ NODE_EXTRA_CA_CERTS: '/ca.pem', NODE_ENV: 'test' });
  writeFileSync(path, 'HTTPS_PROXY=http://proxy.example.com\n');
  expect(() => loadEnvFile({}, path)).toThrow(/HTTPS_PROXY, which Node reads before it/);
  writeFileSync(path, 'NODE_OPTIONS=\nNO_PROXY=\n');
  expect(() => loadEnvFile({}, path)).not.toThrow();
});
