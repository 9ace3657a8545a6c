import promises from 'node:fs/promises';
import { syncBuiltinESMExports } from 'node:module';
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { openTestStore } from './test-store.ts';

const BLOCK = 4_096;
const blocks = (mb: number) => (mb * 1_024 * 1_024) / BLOCK;

const FULL = /^The database cannot grow, .* make room on it\. .* \(SQLITE_FULL: less than \d MB are free\)$/;

let disk: { blocks: number; bfree: number; bavail: number } | Error;

beforeEach(() => {
  vi.spyOn(promises, 'statfs').mockImplementation((async () => {
    if (disk instanceof Error) throw disk;
    return { bsize: BLOCK, ...disk };
  }) as unknown as typeof promises.statfs);
  syncBuiltinESMExports();
});

afterEach(() => {
  vi.restoreAllMocks();
  syncBuiltinESMExports();
});

const withFree = (mb: number) => ({ blocks: blocks(100), bfree: blocks(mb), bavail: blocks(mb) });

test('a disk that has become full is so until there is clearly room', async () => {
  const { db } = await openTestStore();
  disk = withFree(4);
  await db.check();
  disk = withFree(3.9);
  await expect(db.check()).rejects.toThrow(FULL);
  disk = withFree(7.9);
  await expect(db.check()).rejects.toThrow(FULL);
  disk = withFree(8);
  await db.check();
  disk = withFree(7.9);
  await db.check();
});

test.each([
  [0, true],
  [1_000, false],
])('of what a disk keeps for root, user %i may write: %s', async (user, mayWrite) => {
  vi.spyOn(process, 'geteuid').mockReturnValue(user);
  const { db } = await openTestStore();
  disk = { ...withFree(50), bavail: 0 };
  const checked = db.check();
  await (mayWrite ? checked : expect(checked).rejects.toThrow(FULL));
});

test.each([
  ['has no blocks', { blocks: 0, bfree: 0, bavail: 0 }],
  ['cannot be asked', new Error('ENOSYS: function not implemented, statfs')],
])('a file system that %s tells nothing of its room', async (_what, said) => {
  const { db } = await openTestStore();
  disk = said;
  await db.check();
});
