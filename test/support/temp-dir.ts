import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll } from 'vitest';

const dirs: string[] = [];

// Registered when a test file imports this, so it runs after whatever that file registers to close what lies in there.
afterAll(() => {
  for (const dir of dirs.splice(0)) rmSync(dir, { recursive: true, force: true });
});

/** Makes an empty directory of its own; it is removed when the test file is through. */
export function tempDir(): string {
  const dir = mkdtempSync(join(tmpdir(), 'partner-app-test-'));
  dirs.push(dir);
  return dir;
}
