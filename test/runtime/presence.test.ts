import { existsSync, readdirSync, renameSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { withFileLock } from '../../src/runtime/file-lock.ts';
import { countWorkers } from '../../src/runtime/living-workers.ts';
import { Presence } from '../../src/runtime/presence.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';

async function enter(dir: string, id: string): Promise<Presence> {
  const presence = new Presence(dir, id);
  await presence.enter();
  return presence;
}

async function deadSeenBy(presence: Presence): Promise<string[]> {
  const dead: string[] = [];
  await presence.forEachDead(async (id) => void dead.push(id));
  return dead;
}

async function spawnPresence(dir: string, id: string) {
  const other = spawnEntry('test/support/hold-presence.ts', {}, { args: [dir, id] });
  await other.waitForOutput(/entered/);
  return other;
}

it('hands a process over that was killed, once, and none that lives', async () => {
  const dir = tempDir();
  const [one, two] = [await enter(dir, 'one'), await enter(dir, 'two')];
  const victim = await spawnPresence(dir, 'victim');
  const survivor = await spawnPresence(dir, 'survivor');
  expect(await deadSeenBy(one)).toEqual([]);
  await victim.stop('SIGKILL');

  const seen = await Promise.all([deadSeenBy(one), deadSeenBy(two)]);
  expect(seen.flat()).toEqual(['victim']);
  expect(await deadSeenBy(one)).toEqual([]);
  await survivor.stop('SIGKILL');
  expect(await deadSeenBy(two)).toEqual(['survivor']);
  await Promise.all([one.leave(), two.leave()]);
  expect(readdirSync(dir)).toEqual([]);
});

it('keeps a dead process whose take-over failed', async () => {
  const dir = tempDir();
  const one = await enter(dir, 'one');
  await (await spawnPresence(dir, 'victim')).stop('SIGKILL');
  const failing = one.forEachDead(async () => {
    throw new Error('Redis is away');
  });
  await expect(failing).rejects.toThrow('Redis is away');
  expect(await deadSeenBy(one)).toEqual(['victim']);
  await one.leave();
});

it('leaves nothing behind when a process leaves in order', async () => {
  const dir = tempDir();
  const one = await enter(dir, 'one');
  const two = await enter(dir, 'two');
  expect(existsSync(join(dir, 'two.lock'))).toBe(true);
  await two.leave();
  expect(await deadSeenBy(one)).toEqual([]);
  await one.leave();
  expect(readdirSync(dir)).toEqual([]);
});

it('says when the directory cannot be had, and leaves all the same', async () => {
  const presence = new Presence('/dev/null/workers', 'one');
  await expect(presence.enter()).rejects.toThrow();
  await presence.leave();
});

it('enters again where its file, or the whole directory, is gone, and leaves in order then', async () => {
  const dir = join(tempDir(), 'workers');
  const one = await enter(dir, 'one');
  for (const gone of [dir, join(dir, 'one.lock')]) {
    rmSync(gone, { recursive: true });
    expect(countWorkers(dir)).toBe(0);
    await one.enter();
    await one.enter();
    expect(countWorkers(dir)).toBe(1);
  }
  const two = await enter(dir, 'two');
  expect(await deadSeenBy(two)).toEqual([]);
  await Promise.all([one.leave(), two.leave()]);
  expect(readdirSync(dir)).toEqual([]);
});

it('enters again where its directory was moved away, and back, and holds none but the newest file', async () => {
  const dir = join(tempDir(), 'workers');
  const away = `${dir}-away`;
  const one = await enter(dir, 'one');
  renameSync(dir, away);
  await one.enter();
  expect(countWorkers(dir)).toBe(1);
  await expect(withFileLock(join(away, 'one.lock'), 0, async () => 'free')).resolves.toBe('free');
  rmSync(dir, { recursive: true });
  renameSync(away, dir);
  expect(countWorkers(dir)).toBe(0);
  await one.enter();
  const two = await enter(dir, 'two');
  expect(await deadSeenBy(two)).toEqual([]);
  await Promise.all([one.leave(), two.leave()]);
  expect(readdirSync(dir)).toEqual([]);
});

it('is taken for dead at no moment while it enters again', async () => {
  const dir = tempDir();
  const one = await enter(dir, 'one');
  const other = spawnEntry('test/support/enter-again.ts', {}, { args: [dir, 'other', '500'] });
  await other.waitForOutput(/entered\n/);
  let isOver = false;
  const over = other.waitForOutput(/entered again/).finally(() => {
    isOver = true;
  });
  const dead: string[] = [];
  while (!isOver) {
    dead.push(...(await deadSeenBy(one)));
    await new Promise((resolve) => setImmediate(resolve));
  }
  await over;
  expect(dead).toEqual([]);
  await other.stop('SIGKILL');
  expect(await deadSeenBy(one)).toEqual(['other']);
  await one.leave();
});
