import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, onTestFinished, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { PATIENCE_MS } from '../support/patience.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const { control, env, session } = await startTestApp({ workers: false });

/** Five tries of it, each of which another worker takes over when its lock has run out. */
const FIVE_BLOCKED_MS = 3 * PATIENCE_MS;

const TAKEN_OVER = /"level":"warn".*"another worker has taken the run over/g;

/** A company that is not installed yet, and workers whose own logic is odd with it alone. */
async function oddCompany(contacts: number) {
  const company = await control.addCompany({ name: 'Odd', plan: 'enterprise', contacts, conversations: 5 });
  const NOTES = join(tempDir(), 'notes');
  const browser = session();
  return {
    install: () => install(browser, company),
    synced: (id: string, limitMs?: number) => waitForStatus(browser, id, isSynced, limitMs),
    startWorker: async (DOES: string) => {
      const worker = spawnEntry('test/trust/odd-worker.ts', { ...env, NOTES, COMPANY: company.id, DOES });
      // A test that fails leaves no worker behind that would take the next one's jobs.
      onTestFinished(() => void worker.stop('SIGKILL'));
      await worker.waitForOutput(/the workers run/);
      return worker;
    },
    /** The ids of each batch that was told. */
    told: () =>
      readFileSync(NOTES, 'utf8')
        .trimEnd()
        .split('\n')
        .map((line) => line.split(' ')),
  };
}

test('own logic whose calls fail while it awaits another one fails on its batch, and ends no process', async () => {
  const { startWorker, install, synced, told } = await oddCompany(5);
  const worker = await startWorker('floats');
  const { resources } = await synced(await install());
  expect(resources.contacts).toMatchObject({ stored: 5, set_aside: { parked: 1 } });
  expect(resources.contacts?.set_aside.parked_batches[0]?.error).toContain('404');
  expect(told().length).toBe(5);
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});

test('own logic that keeps its process for so long that another worker takes its run over is tried a few times, then parked and shown', async () => {
  const { startWorker, install, synced, told } = await oddCompany(5);
  // While one is blocked, and one is still on its way out of it, a third has time to see what was lost.
  const workers = await Promise.all([1, 2, 3].map(() => startWorker('blocks')));
  const { resources } = await synced(await install(), FIVE_BLOCKED_MS);
  expect(resources.contacts).toMatchObject({
    stored: 5,
    set_aside: {
      parked: 1,
      parked_batches: [{ tries: 5, error: expect.stringContaining('did not come to an end') }],
    },
  });
  expect(told().length).toBe(5);
  const warnings = () => workers.flatMap((worker) => worker.output().match(TAKEN_OVER) ?? []);
  await waitFor(() => warnings().length === 5);
  for (const worker of workers) expect(await worker.stop()).toEqual({ code: 0, signal: null });
});

test('a batch that ends its process each time it is told is parked, too, and the sync goes on', async () => {
  const { startWorker, install, synced, told } = await oddCompany(5);
  let id: string | undefined;
  for (let tries = 0; tries < 5; tries++) {
    const worker = await startWorker('crashes');
    id ??= await install();
    expect(await worker.exited).toEqual({ code: 1, signal: null });
    expect(worker.output()).toMatch(/outside its batch.*"msg":"uncaught exception"/);
  }
  const next = await startWorker('crashes');
  const { resources } = await synced(id ?? '');
  expect(resources.contacts).toMatchObject({ stored: 5, set_aside: { parked: 1 } });
  expect(resources.contacts?.set_aside.parked_batches[0]).toMatchObject({ tries: 5 });
  expect(told().length).toBe(5);
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});

test('SIGTERM ends a worker in order whose own logic does not heed its signal: its batch is told again, and nothing is used up', async () => {
  const { startWorker, install, synced, told } = await oddCompany(5);
  const worker = await startWorker('sleeps');
  const id = await install();
  await worker.waitForOutput(/at work/);
  expect(await worker.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  expect(worker.output()).toContain('"msg":"shut down"');
  // Well again: what was told is told once more, and taken.
  const next = await startWorker('');
  const { resources } = await synced(id);
  expect(resources.contacts).toMatchObject({ stored: 5, error: null, set_aside: { parked: 0 } });
  const [first, ...others] = told();
  expect(others).toEqual([first]);
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});

test('SIGTERM leaves own logic that heeds its signal the time to end: its batch is written then', async () => {
  const { startWorker, install, synced, told } = await oddCompany(5);
  const worker = await startWorker('heeds');
  const id = await install();
  await worker.waitForOutput(/at work/);
  expect(await worker.stop('SIGTERM')).toEqual({ code: 0, signal: null });
  const next = await startWorker('heeds');
  expect((await synced(id)).resources.contacts).toMatchObject({ stored: 5, set_aside: { parked: 0 } });
  expect(told().length).toBe(1);
  expect(await next.stop()).toEqual({ code: 0, signal: null });
});
