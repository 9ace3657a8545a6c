import { randomInt } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { expect, onTestFailed, test } from 'vitest';
import type { JournalRow } from '../../src/sandbox/journal.ts';
import { randomFrom } from '../client/budget/model/random.ts';
import { downloadIds, install, isSynced, largestWindow, waitForStatus } from '../support/install.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const KILLS = 50;
const AT_ONCE = 3;
const WINDOW_MS = 2_000;
const LIMIT = 120;
const RECORDS = { contacts: 20_050, conversations: 20_000 };
const PAGES = Math.ceil(RECORDS.contacts / 100) + Math.ceil(RECORDS.conversations / 100);

/** `KILL_SEED=…` draws the same kills again; what they meet depends on the machine as well. */
const SEED = Number(process.env.KILL_SEED ?? randomInt(2 ** 31));

test('workers that are killed at random, fifty times over one sync, lose and double nothing and keep the limit', async () => {
  onTestFailed(() => {
    process.stderr.write(`The kills were drawn from KILL_SEED=${SEED}.\n`);
  });
  const random = randomFrom(SEED);
  const notes = join(tempDir(), 'notes');
  const testApp = await startTestApp({ workers: false, sandbox: { windowMs: WINDOW_MS, latencyMs: 10 } });
  const { control } = testApp;
  const spawnWorker = () => spawnEntry('test/trust/watched-worker.ts', { ...testApp.env, NOTES: notes });

  const isUp = (worker: EntryProcess) => /the workers run/.test(worker.output());
  const workers = Array.from({ length: AT_ONCE }, spawnWorker);
  await Promise.all(workers.map((worker) => worker.waitForOutput(/the workers run/)));
  const company = await control.addCompany({ name: 'Often killed', plan: 'enterprise', ...RECORDS });
  const browser = testApp.session();
  const id = await install(browser, company);

  // Spread over the pages, not over the time: so the sync outlasts the kills on a machine of any speed.
  const moments = Array.from({ length: KILLS }, () => Math.floor(random() * (PAGES - 20))).sort(
    (one, other) => one - other,
  );
  const calls: JournalRow[] = [];
  const readCalls = async () => {
    calls.push(...(await control.requests(calls.at(-1)?.n)));
    return calls.filter(({ company_id, path }) => company_id === company.id && !path.startsWith('/oauth'));
  };
  for (const moment of moments) {
    const victims = await waitFor(
      async () => (await readCalls()).length >= moment && workers.some(isUp) && workers.filter(isUp),
      { what: `page ${moment}` },
    );
    await sleep(random() * 50);
    const victim = victims[Math.floor(random() * victims.length)];
    if (victim === undefined) throw new Error('nobody to kill');
    expect(await victim.stop('SIGKILL')).toEqual({ code: null, signal: 'SIGKILL' });
    workers.splice(workers.indexOf(victim), 1, spawnWorker());
  }
  const status = await waitForStatus(browser, id, isSynced);
  expect(status.resources).toMatchObject({ contacts: { deleted: 0 }, conversations: { deleted: 0 } });

  const seen = new Set(readFileSync(notes, 'utf8').trimEnd().split('\n'));
  for (const resource of ['contacts', 'conversations'] as const) {
    const ids = await downloadIds(browser, id, resource);
    expect(ids.length).toBe(RECORDS[resource]);
    expect(new Set(ids).size).toBe(ids.length);
    expect(ids.filter((each) => !seen.has(`${resource} created ${each}`))).toEqual([]);
  }
  const ours = await readCalls();
  expect(ours.filter(({ status: code }) => code === 429)).toEqual([]);
  const times = ours.map(({ at }) => at);
  expect(largestWindow(times, WINDOW_MS)).toBeLessThanOrEqual(LIMIT);
});
