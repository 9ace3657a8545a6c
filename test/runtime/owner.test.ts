import { chownSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { giveToOwnerOfDir } from '../../src/runtime/owner.ts';
import { tempDir } from '../support/temp-dir.ts';

const OWNER = 4711;
const isRoot = process.getuid?.() === 0;

/** A new file in a directory of somebody else's. */
function fileIn(dir: string): string {
  if (isRoot) chownSync(dir, OWNER, OWNER);
  const path = join(dir, 'tokens');
  writeFileSync(path, '');
  return path;
}

test.runIf(isRoot)('what root makes in the app’s directory belongs to the app’s user', () => {
  const path = fileIn(tempDir());
  giveToOwnerOfDir(path);
  expect(statSync(path).uid).toBe(OWNER);
});

test.runIf(isRoot)('no file of root’s goes to somebody who puts a link in its place', () => {
  const dir = tempDir();
  const secret = join(tempDir(), 'secret');
  writeFileSync(secret, '');
  chownSync(dir, OWNER, OWNER);
  symlinkSync(secret, join(dir, 'tokens'));
  giveToOwnerOfDir(join(dir, 'tokens'));
  expect(statSync(secret).uid).toBe(0);
});

test('a file that is gone meanwhile is no error', () => {
  expect(() => giveToOwnerOfDir(join(tempDir(), 'gone'))).not.toThrow();
});
