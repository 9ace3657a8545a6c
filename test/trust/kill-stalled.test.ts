import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { expect, test } from 'vitest';
import { downloadIds, install, isSynced, largestWindow, waitForStatus } from '../support/install.ts';
import { type EntryProcess, spawnEntry } from '../support/spawn-entry.ts';
import { stopWorker } from '../support/stop-worker.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';

const WINDOW_MS = 6_000;
const LIMIT = 120;

const RECORDS = { contacts: 1_050, conversations: 850 };

const dir = tempDir();
const notes = join(dir, 'notes');
const testApp = await startTestApp({ workers: false, sandbox: { windowMs: WINDOW_MS, latencyMs: 20 } });
const { control } = testApp;

const spawnWorker = async (hold: { HOLD?: string; HOLD_HOW?: string } = {}) => {
  const worker = spawnEntry('test/trust/watched-worker.ts', { ...testApp.env, NOTES: notes, ...hold });
  await worker.waitForOutput(/the workers run/);
  return worker;
};

/** A worker that has read a page of a new company, has handed it to its own logic, and does not get to writing it. */
async function holdPage(name: string, how: 'wait' | 'block') {
  const hold = join(dir, name);
  writeFileSync(hold, '');
  const worker = await spawnWorker({ HOLD: hold, HOLD_HOW: how });
  const company = await control.addCompany({ name, plan: 'enterprise', ...RECORDS });
  const browser = testApp.session();
  const id = await install(browser, company);
  await worker.waitForOutput(/holds a page/);
  return { worker, company, browser, id, release: () => rmSync(hold) };
}

/** Everything that the app keeps of an instance's runs and records. */
function stored(instanceId: string): unknown {
  const db = new Sqlite(testApp.config.databaseUrl.replace('file:', ''), { readonly: true });
  const read = (source: string) => db.prepare(source).all(instanceId);
  const rows = [
    read('select * from runs where instance_id = ? order by resource'),
    read('select * from records where list in (select list from runs where instance_id = ?) order by seq'),
  ];
  db.close();
  return rows;
}

/** The end of a worker in order: what it had under way is over then. */
async function endInOrder(worker: EntryProcess): Promise<void> {
  expect((await worker.stop('SIGTERM')).code, worker.output()).toBe(0);
}

test('a worker that is stopped or blocked for longer than its job’s lock cannot write what it still holds', async () => {
  const stopped = await holdPage('Stopped', 'wait');
  await stopWorker(stopped.worker.pid, testApp.config.databaseUrl);
  const blocked = await holdPage('Blocked', 'block');
  const cases = [stopped, blocked];

  // Both are alive as far as anybody can tell: it is the end of their jobs' locks that lets another worker go on.
  const healthy = await spawnWorker();
  for (const { browser, id } of cases) await waitForStatus(browser, id, isSynced);
  const before = cases.map(({ id }) => stored(id));

  process.kill(stopped.worker.pid, 'SIGCONT');
  for (const { worker, release } of cases) {
    release();
    await worker.waitForOutput(/lets it go/);
    await endInOrder(worker);
  }
  expect(cases.map(({ id }) => stored(id))).toEqual(before);

  const seen = new Set(readFileSync(notes, 'utf8').trimEnd().split('\n'));
  const calls = await control.requests();
  for (const { browser, id, company } of cases) {
    for (const resource of ['contacts', 'conversations'] as const) {
      const ids = await downloadIds(browser, id, resource);
      expect(ids.length).toBe(RECORDS[resource]);
      expect(new Set(ids).size).toBe(ids.length);
      expect(ids.filter((each) => !seen.has(`${resource} created ${each}`))).toEqual([]);
    }
    const ours = calls.filter(
      ({ company_id, path }) => company_id === company.id && !path.startsWith('/oauth'),
    );
    expect(ours.filter(({ status }) => status === 429)).toEqual([]);
    const times = ours.map(({ at }) => at);
    expect(largestWindow(times, WINDOW_MS)).toBeLessThanOrEqual(LIMIT);
  }
  await endInOrder(healthy);
});
