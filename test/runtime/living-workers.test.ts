import { join } from 'node:path';
import { afterEach, expect, it, vi } from 'vitest';
import { countWorkers, watchWorkers } from '../../src/runtime/living-workers.ts';
import { Presence } from '../../src/runtime/presence.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { waitFor } from '../support/wait-for.ts';

afterEach(() => void vi.useRealTimers());

async function spawnPresence(dir: string, id: string) {
  const process = spawnEntry('test/support/hold-presence.ts', {}, { args: [dir, id] });
  await process.waitForOutput(/entered/);
  return process;
}

it('counts the living, in this process and in others, and none that was killed or has left', async () => {
  const dir = join(tempDir(), 'app.db-workers');
  expect(countWorkers(dir)).toBe(0);
  const own = new Presence(dir, 'own');
  await own.enter();
  const other = await spawnPresence(dir, 'other');
  expect(countWorkers(dir)).toBe(2);
  // To look takes nothing from anybody.
  expect(countWorkers(dir)).toBe(2);
  await other.stop('SIGKILL');
  expect(countWorkers(dir)).toBe(1);
  await own.leave();
  expect(countWorkers(dir)).toBe(0);
});

it('leaves what a dead worker held to the next worker', async () => {
  const dir = tempDir();
  await (await spawnPresence(dir, 'victim')).stop('SIGKILL');
  expect(countWorkers(dir)).toBe(0);
  const next = new Presence(dir, 'next');
  await next.enter();
  const dead: string[] = [];
  await next.forEachDead(async (id) => void dead.push(id));
  expect(dead).toEqual(['victim']);
  await next.leave();
});

it('says nothing of workers whose files cannot be kept', () => {
  expect(countWorkers('/dev/null/app.db-workers')).toBeUndefined();
});

it('tells that none runs when it has seen none for a while, and that one runs again', async () => {
  const dir = join(tempDir(), 'app.db-workers');
  const workers = watchWorkers(dir, 20);
  expect(workers.areMissing).toBe(false);
  await waitFor(() => workers.areMissing);
  expect(workers.count()).toBe(0);
  const worker = new Presence(dir, 'one');
  await worker.enter();
  await waitFor(() => !workers.areMissing);
  await worker.leave();
  workers.close();
});

it('does not tell that none runs of one look without any, as when a worker is started anew', async () => {
  vi.useFakeTimers({ toFake: ['setInterval', 'clearInterval'] });
  const dir = join(tempDir(), 'app.db-workers');
  const workers = watchWorkers(dir, 20);
  const look = () => void vi.advanceTimersByTime(20);
  const worker = new Presence(dir, 'one');
  for (let start = 1; start <= 3; start++) {
    look();
    expect(workers.areMissing).toBe(false);
    await worker.enter();
    look();
    await worker.leave();
  }
  look();
  look();
  expect(workers.areMissing).toBe(true);
  workers.close();
});
