import { join } from 'node:path';
import { setImmediate as nextTurn } from 'node:timers/promises';
import { setFlagsFromString } from 'node:v8';
import { runInNewContext } from 'node:vm';
import { expect, it } from 'vitest';
import { FileLockTimeoutError, withFileLock } from '../../src/runtime/file-lock.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

it('lets one in at a time', async () => {
  const path = join(tempDir(), 'lock');
  let inside = 0;
  let most = 0;
  const visit = () =>
    withFileLock(path, 5_000, async () => {
      inside += 1;
      most = Math.max(most, inside);
      await new Promise((resolve) => setImmediate(resolve));
      inside -= 1;
      return inside;
    });
  await expect(Promise.all([visit(), visit(), visit()])).resolves.toEqual([0, 0, 0]);
  expect(most).toBe(1);
});

it('is free again after an action that threw', async () => {
  const path = join(tempDir(), 'lock');
  const failing = withFileLock(path, 100, async () => {
    throw new Error('broken');
  });
  await expect(failing).rejects.toThrow('broken');
  await expect(withFileLock(path, 100, async () => 'in')).resolves.toBe('in');
});

it('holds between processes, and ends with one that is killed', async () => {
  const path = join(tempDir(), 'lock');
  const holder = spawnEntry('test/support/hold-lock.ts', {}, { args: [path] });
  await holder.waitForOutput(/locked/);
  await expect(withFileLock(path, 50, async () => 'in')).rejects.toThrow(FileLockTimeoutError);
  await holder.stop('SIGKILL');
  await expect(withFileLock(path, 1_000, async () => 'in')).resolves.toBe('in');
});

it('holds while nothing refers to it but its holder, whatever the garbage collector takes', async () => {
  const path = join(tempDir(), 'lock');
  await new Promise<void>((resolve) => {
    void withFileLock(path, 0, () => {
      resolve();
      return new Promise(() => undefined);
    });
  });
  await collectGarbage();
  await expect(withFileLock(path, 0, async () => 'in')).rejects.toThrow(FileLockTimeoutError);
});

/** Databases are closed in a later turn than they are collected. */
async function collectGarbage(): Promise<void> {
  setFlagsFromString('--expose-gc');
  const collect: () => void = runInNewContext('gc');
  for (let turn = 0; turn < 5; turn++) {
    collect();
    await nextTurn();
  }
}
