import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { request } from 'undici';
import { expect, test } from 'vitest';
import type { HttpSession } from '../support/http-session.ts';
import { install, readStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { stopWorker } from '../support/stop-worker.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

const LISTS = ['contacts', 'conversations'] as const;

/** This page of each list is answered late, so that a request of each is under way when somebody disconnects. */
const LATE_PAGE = 3;
const LATE_MS = 3_500;

const notesFile = join(tempDir(), 'notes');
const testApp = await startTestApp({ workers: false });
const { control, sandbox } = testApp;
const worker = spawnEntry('test/trust/watched-worker.ts', { ...testApp.env, NOTES: notesFile });
await worker.waitForOutput(/the workers run/);

async function faultsUsed(): Promise<number> {
  const answer = await request(`${sandbox.origin}/_sandbox/faults`);
  const faults = (await answer.body.json()) as { used: number }[];
  return faults.reduce((sum, { used }) => sum + used, 0);
}

/** A company in the middle of its first sync: of each list two pages are written, and the third is under way. */
async function begin(name: string) {
  const company = await control.addCompany({
    name,
    plan: 'enterprise',
    contacts: 1_000,
    conversations: 1_000,
  });
  const before = await faultsUsed();
  for (const list of LISTS) {
    await control.fault({
      match: { path: `/${list}`, company_id: company.id, nth: LATE_PAGE },
      fault: { delay_ms: LATE_MS },
    });
  }
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitFor(async () => (await faultsUsed()) === before + LISTS.length);
  await waitFor(async () => {
    const { resources } = await readStatus(browser, id);
    return LISTS.every((list) => resources[list]?.pages === LATE_PAGE - 1);
  });
  return { company, browser, id };
}

async function disconnect(browser: HttpSession, id: string, fields: Record<string, string>): Promise<void> {
  const dashboard = await browser.get(`/instances/${id}`);
  const answer = await browser.submit(dashboard.form(`/instances/${id}/disconnect`), fields);
  expect(answer.body).toContain('Disconnected.');
}

/** Everything that the app has of an instance. */
function stored(id: string) {
  const db = new Sqlite(testApp.config.databaseUrl.replace('file:', ''), { readonly: true });
  const all = (source: string) => db.prepare(source).all(id);
  const rows = {
    tokens: all('select * from tokens where instance_id = ?'),
    runs: all('select * from runs where instance_id = ?'),
    records: all('select * from records where list in (select list from runs where instance_id = ?)'),
  };
  db.close();
  return rows;
}

const notes = () => readFileSync(notesFile, 'utf8');

/** Waits until the answers that were under way have come, and the worker has nothing of the instance left. */
async function waitForEnd(companyId: string, id: string): Promise<void> {
  await waitFor(async () => {
    const late = (await control.requests()).filter(
      ({ company_id, fault }) => company_id === companyId && fault,
    );
    const jobs = await testApp.app.queues.sync.getJobs(['active', 'waiting', 'delayed', 'prioritized']);
    return late.length >= LISTS.length && jobs.every((job) => job.data.instanceId !== id);
  });
}

test.each([
  { what: 'a worker that is at it', deletes: false, stops: false },
  { what: 'a worker that is at it, the copy deleted', deletes: true, stops: false },
  { what: 'a worker that was stopped meanwhile, the copy deleted', deletes: true, stops: true },
])('a disconnect while requests are under way ends everything: $what', async ({ deletes, stops }) => {
  const { company, browser, id } = await begin('Leaves');
  if (stops) await stopWorker(worker.pid, testApp.config.databaseUrl);
  const copied = stored(id).records.length;
  expect(copied).toBe(2 * 100 * LISTS.length);
  await disconnect(browser, id, deletes ? { delete_data: 'on' } : {});
  const disconnectedAt = (await control.state()).now;
  const before = { stored: stored(id), notes: notes() };
  expect(before.stored.tokens).toEqual([]);
  expect(before.stored.records.length).toBe(deletes ? 0 : copied);
  const answered = (await control.requests()).filter(
    ({ company_id, fault }) => company_id === company.id && fault,
  );
  expect(answered, 'the test was too slow: nothing was under way any more').toEqual([]);

  if (stops) {
    await waitFor(async () =>
      (await control.requests()).some(({ fault, company_id }) => company_id === company.id && fault),
    );
    process.kill(worker.pid, 'SIGCONT');
  }
  await waitForEnd(company.id, id);
  const sent = (await control.requests()).filter(
    ({ company_id, at }) => company_id === company.id && at > disconnectedAt,
  );
  expect(sent).toEqual([]);
  expect({ stored: stored(id), notes: notes() }).toEqual(before);
});

test('afterwards the worker goes on with others', async () => {
  const company = await control.addCompany({
    name: 'Stays',
    plan: 'starter',
    contacts: 150,
    conversations: 0,
  });
  const browser = testApp.session();
  const id = await install(browser, company);
  await waitFor(async () => (await readStatus(browser, id)).resources.contacts?.stored === 150);
  expect((await worker.stop('SIGTERM')).code, worker.output()).toBe(0);
});
