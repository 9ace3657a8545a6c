import { chownSync, mkdirSync, readdirSync, statSync, symlinkSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { withFileLock } from '../../src/runtime/file-lock.ts';
import { Presence } from '../../src/runtime/presence.ts';
import { tempDir } from '../support/temp-dir.ts';

const OWNER = 4711;

/** Who a directory belongs to, and all that is in it. */
function ownersOf(dir: string): number[] {
  return ['.', ...readdirSync(dir)].map((name) => statSync(join(dir, name)).uid);
}

async function ownersBeside(database: string): Promise<Record<string, number[]>> {
  const workers = `${database}-workers`;
  const presence = new Presence(workers, 'one');
  await presence.enter();
  const owners = { workers: ownersOf(workers) };
  await presence.leave();
  return owners;
}

test.runIf(process.getuid?.() === 0)(
  'what root makes beside a database is its owner’s, also a directory that root has made before',
  async () => {
    const database = join(tempDir(), 'app.db');
    writeFileSync(database, '');
    chownSync(database, OWNER, OWNER);
    mkdirSync(`${database}-workers`);
    const owners = { workers: [OWNER, OWNER] };
    expect(await ownersBeside(database)).toEqual(owners);
  },
);

test.runIf(process.getuid?.() === 0)(
  'no file of root’s goes to somebody who leads a lock to it',
  async () => {
    const database = join(tempDir(), 'app.db');
    writeFileSync(database, '');
    chownSync(database, OWNER, OWNER);
    const [secret, dir] = [join(tempDir(), 'secret'), `${database}-workers`];
    writeFileSync(secret, '');
    mkdirSync(dir);
    chownSync(dir, OWNER, OWNER);
    symlinkSync(secret, join(dir, 'dead.lock'));
    symlinkSync(`${secret}-new`, join(dir, 'dying.lock'));
    const presence = new Presence(dir, 'one');
    await presence.enter();
    await presence.forEachDead(async () => {});
    await withFileLock(join(dir, 'dying.lock'), 0, async () => {});
    await presence.leave();
    expect([secret, `${secret}-new`].map((path) => statSync(path).uid)).toEqual([0, 0]);
  },
);

test('where there is no database of that name, or its owner is at work, nothing changes hands', async () => {
  const own = process.getuid?.() ?? 0;
  const database = join(tempDir(), 'app.db');
  const owners = { workers: [own, own] };
  expect(await ownersBeside(database)).toEqual(owners);
  writeFileSync(database, '');
  expect(await ownersBeside(database)).toEqual(owners);
});
