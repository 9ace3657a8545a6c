import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { expect, test } from 'vitest';
import { install, isSynced, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';

/** Of a process, where many others run beside it. */
const START_LIMIT_MS = 60_000;

const { control, env, session } = await startTestApp({ workers: false });

/** A company that is not installed yet, and workers whose own logic is odd with it alone. */
async function oddCompany(contacts: number) {
  const company = await control.addCompany({ name: 'Odd', plan: 'enterprise', contacts, conversations: 5 });
  const NOTES = join(tempDir(), 'notes');
  return {
    company,
    startWorker: async (DOES: string) => {
      const worker = spawnEntry('test/trust/odd-worker.ts', { ...env, NOTES, COMPANY: company.id, DOES });
      await worker.waitForOutput(/the workers run/, START_LIMIT_MS);
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

test('own logic whose calls fail while it awaits another one fails on its batch, and ends no process', {
  timeout: 120_000,
}, async () => {
  const { company, startWorker, told } = await oddCompany(5);
  const worker = await startWorker('floats');
  const browser = session();
  const id = await install(browser, company);
  const { resources } = await waitForStatus(browser, id, isSynced, START_LIMIT_MS);
  expect(resources.contacts).toMatchObject({ stored: 5, set_aside: { parked: 1 } });
  expect(resources.contacts?.set_aside.parked_batches[0]?.error).toContain('404');
  expect(told().length).toBe(5);
  expect(await worker.stop()).toEqual({ code: 0, signal: null });
});
