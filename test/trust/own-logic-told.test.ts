import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterAll, expect, test } from 'vitest';
import type { OwnLogic } from '../../src/sync/own-logic.ts';
import type { HttpSession } from '../support/http-session.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { spawnEntry } from '../support/spawn-entry.ts';
import { tempDir } from '../support/temp-dir.ts';
import { startTestApp, type TestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { sendPage, startHostileService } from './hostile-service.ts';

const hostile = await startHostileService();
const SERVICE = { SERVICE_API_URL: `${hostile.origin}/api` };
/** What the own logic does for a company once, with its batch dealt with. */
const onceOf = new Map<string, () => Promise<unknown>>();
/** What each company's own logic has made of what it was told. */
const knownOf = new Map<string, Set<unknown>>();

const ownLogic: OwnLogic = async ({ companyId, resource, created, changed, deleted }) => {
  if (resource !== 'contacts' || companyId === null) return;
  const known = knownOf.get(companyId) ?? new Set();
  knownOf.set(companyId, known);
  for (const { id } of [...created, ...changed]) known.add(id);
  for (const { id } of deleted) known.delete(id);
  const isFirst = known.size === 1 && created.length === 1 && created[0]?.id === 'A';
  const comes = onceOf.get(companyId);
  if (isFirst || comes === undefined) return;
  onceOf.delete(companyId);
  await comes();
};

/** A company whose list is ours; with one contact it is installed and synced. */
async function startCompany({ control, sandbox, session }: TestApp) {
  hostile.lead(sandbox.origin);
  const company = await control.addCompany({ name: 'Told', plan: 'starter', contacts: 0, conversations: 0 });
  const list = ['A'];
  hostile.answer(company.id, ({ response }) => sendPage(response, list, null));
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  return { company, list, browser, id };
}

/** Sees a run through that begins after what has happened so far. */
async function syncAgain({ app }: TestApp, browser: HttpSession, id: string): Promise<void> {
  const { resources } = await waitForStatus(browser, id, isSynced);
  await app.control.syncNow(id);
  await waitForStatus(
    browser,
    id,
    (status) =>
      isSynced(status) && status.resources.contacts?.finished_at !== resources.contacts?.finished_at,
  );
}

test('a worker that is killed with a new record told: when that is gone by the next one, its own logic is told so', async () => {
  const testApp = await startTestApp({ workers: false, env: SERVICE });
  const dir = tempDir();
  const [NOTES, HOLD] = [join(dir, 'notes'), join(dir, 'hold')];
  const spawnWorker = () => spawnEntry('test/trust/watched-worker.ts', { ...testApp.env, NOTES, HOLD });
  const victim = spawnWorker();
  const { list, browser, id } = await startCompany(testApp);
  list.push('B');
  writeFileSync(HOLD, '');
  await testApp.app.control.syncNow(id);
  await victim.waitForOutput(/holds a page of contacts/);
  await victim.stop('SIGKILL');
  list.pop();
  rmSync(HOLD);

  const next = spawnWorker();
  await waitForStatus(browser, id, isSynced);
  await syncAgain(testApp, browser, id);
  expect(await downloadIds(browser, id, 'contacts')).toEqual(['A']);
  expect(readFileSync(NOTES, 'utf8').trimEnd().split('\n')).toEqual([
    'contacts created A',
    'contacts created B',
    'contacts deleted B',
  ]);
  expect((await next.stop('SIGTERM')).code).toBe(0);
});

const inProcess = await startTestApp({ workers: false, env: SERVICE, ownLogic });
const { app } = inProcess;
const workers = app.startWorkers();
afterAll(() => workers.close());

/** What the own logic of a company knows is what its copy has, and the service; also after a further run. */
async function expectToldAll({ company, list, browser, id }: Awaited<ReturnType<typeof startCompany>>) {
  await waitForStatus(browser, id, isSynced);
  for (const _run of [1, 2]) {
    await syncAgain(inProcess, browser, id);
    expect(await downloadIds(browser, id, 'contacts')).toEqual(list);
    expect([...(knownOf.get(company.id) ?? [])].sort()).toEqual(list);
  }
  expect((await readStatus(browser, id)).resources.contacts).toMatchObject({
    stored: list.length,
    set_aside: { parked: 0 },
  });
}

test('own logic that has dealt with a new record and then throws is told when that is gone by the next try', async () => {
  const told = await startCompany(inProcess);
  onceOf.set(told.company.id, async () => {
    told.list.pop();
    throw new Error('afterwards');
  });
  told.list.push('B');
  await syncAgain(inProcess, told.browser, told.id);
  await expectToldAll(told);
});

test('a pause while a new record is told: when that is gone by the time it goes on, the own logic is told so', async () => {
  const told = await startCompany(inProcess);
  onceOf.set(told.company.id, () => app.control.pause(told.id));
  told.list.push('B');
  await app.control.syncNow(told.id);
  await waitForStatus(
    told.browser,
    told.id,
    ({ status, resources }) => status === 'paused' && resources.contacts?.state === 'waiting',
  );
  expect(knownOf.get(told.company.id)).toEqual(new Set(['A', 'B']));
  told.list.pop();
  await app.control.resume(told.id);
  await expectToldAll(told);
});

test('a disconnect while a record is told as deleted: when that is there again at the next install, it is told as new', async () => {
  const told = await startCompany(inProcess);
  const isDisconnected = Promise.withResolvers<void>();
  onceOf.set(told.company.id, async () => {
    await app.control.disconnect(told.id, { deleteData: false });
    isDisconnected.resolve();
  });
  told.list.pop();
  await app.control.syncNow(told.id);
  await isDisconnected.promise;
  expect(knownOf.get(told.company.id)).toEqual(new Set());
  told.list.push('A');
  await waitFor(async () => (await install(told.browser, told.company)) === told.id, { what: 'the install' });
  await expectToldAll(told);
});
