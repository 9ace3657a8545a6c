import { withFileLock } from '../../src/runtime/file-lock.ts';

/** Takes the lock whose path is the first argument, and keeps it until it is killed. */
const [, , path] = process.argv;
if (path === undefined) throw new Error('the path of the lock is needed');
await withFileLock(path, 1_000, async () => {
  process.stdout.write('locked\n');
  await new Promise((resolve) => setTimeout(resolve, 60_000));
});
