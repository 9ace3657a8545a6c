import { createHash } from 'node:crypto';
import { rmSync, statSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { FileLocks, FileLocksError } from '../../src/runtime/file-locks.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

const { signal: never } = new AbortController();

/** Where the lock of a name is. */
function fileOf(dir: string, name: string): string {
  return join(dir, `${createHash('sha256').update(name).digest('hex')}.lock`);
}

it('lets one in at a time by name, whatever the name holds; others have their own', async () => {
  const dir = join(tempDir(), 'locks');
  const [one, other] = [new FileLocks(dir), new FileLocks(dir)];
  const [begun, goOn] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()];
  const order: string[] = [];
  const first = one.hold(
    '../a/b',
    async () => {
      begun.resolve();
      await goOn.promise;
      order.push('first');
    },
    never,
  );
  await begun.promise;
  const second = other.hold('../a/b', async () => order.push('second'), never);
  await other.hold('c', async () => order.push('another'), never);
  goOn.resolve();
  await Promise.all([first, second]);
  expect(order).toEqual(['another', 'first', 'second']);
  expect(statSync(dir).mode & 0o777).toBe(0o700);
});

it('ends waiting by its signal, and is not waited for once its holder is killed', async () => {
  const dir = tempDir();
  const locks = new FileLocks(dir);
  const holder = spawnEntry('test/support/hold-lock.ts', {}, { args: [fileOf(dir, 'one')] });
  await holder.waitForOutput(/locked/);
  const end = new AbortController();
  let entered = 0;
  const waiting = locks.hold('one', async () => ++entered, end.signal);
  const isEnded = expect(waiting).rejects.toThrow('enough');
  end.abort(new Error('enough'));
  await isEnded;
  const next = locks.hold('one', async () => ++entered, never);
  await holder.stop('SIGKILL');
  expect(await next).toBe(1);
});

it('can be looked at beforehand', async () => {
  const dir = join(tempDir(), 'locks');
  writeFileSync(dir, '');
  await expect(new FileLocks(dir).check()).rejects.toThrow(`The locks in ${dir} cannot be written`);
  rmSync(dir);
  await new FileLocks(dir).check();
  expect(await new FileLocks(dir).hold('one', async () => 'held', never)).toBe('held');
});

it('passes on what the work throws, and says what to do where the directory cannot be made', async () => {
  const failing = async () => {
    throw new Error('out of paper');
  };
  await expect(new FileLocks(tempDir()).hold('one', failing, never)).rejects.toThrow(/^out of paper$/);
  await expect(new FileLocks('/dev/null/locks').hold('one', failing, never)).rejects.toThrow(
    'The locks in /dev/null/locks cannot be written: see that',
  );
  const outOfFiles = Object.assign(new Error('open'), { code: 'EMFILE' });
  expect(new FileLocksError('/locks', outOfFiles).message).toMatch(/ulimit -n/);
});
