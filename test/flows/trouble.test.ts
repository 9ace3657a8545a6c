import { expect, test } from 'vitest';
import type { RecordBatch } from '../../src/sync/own-logic.ts';
import { downloadIds, install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import type { FaultOrder } from '../support/sandbox-control.ts';
import { startTestApp } from '../support/test-app.ts';

const batches: RecordBatch[] = [];
let ownLogicFails = false;
let onBatch: ((batch: RecordBatch) => Promise<void>) | undefined;
const testApp = await startTestApp({
  ownLogic: async (batch) => {
    if (ownLogicFails) throw new Error('the warehouse is closed');
    batches.push(batch);
    await onBatch?.(batch);
  },
});
const { app, control, session } = testApp;

async function newCompany() {
  return control.addCompany({ name: 'Trouble', plan: 'starter', contacts: 250, conversations: 120 });
}

async function press(browser: ReturnType<typeof session>, id: string, button: string, fields = {}) {
  const dashboard = await browser.get(`/instances/${id}`);
  return browser.submit(dashboard.form(`/instances/${id}/${button}`), fields);
}

test.each<[string, FaultOrder['fault']]>([
  ['a 500', { status: 500 }],
  ['a connection that breaks', { drop: 'before' }],
  ['an answer that is lost', { drop: 'after' }],
  ['an answer that is cut short', { truncate: 300 }],
  ['a page of HTML', { status: 200, body: '<h1>maintenance</h1>', headers: { 'content-type': 'text/html' } }],
  ['a page that does not say what comes next', { status: 200, body: { _results: [] } }],
  ['a 503 with retry-after', { status: 503, headers: { 'retry-after': '0.2' } }],
  ['a 429 by a guard', { status: 429, headers: { 'retry-after': '0.2', 'x-service-tier': '1' } }],
])('%s is tried again, and nothing is missing', async (_what, fault) => {
  const company = await newCompany();
  const match = { path: '/contacts', company_id: company.id };
  await control.fault({ match, fault, times: 2 });
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const ids = await downloadIds(browser, id, 'contacts');
  expect(ids.length).toBe(250);
  expect(new Set(ids).size).toBe(250);
});

test('trouble that lasts fails the resource with a reason, and leaves the other one alone', async () => {
  const company = await newCompany();
  const browser = session();
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 403 },
    times: 50,
  });
  const id = await install(browser, company);
  const status = await waitForStatus(
    browser,
    id,
    ({ resources }) => resources.contacts?.state === 'failed' && resources.conversations?.state === 'idle',
  );
  expect(status.resources.contacts?.error).toContain('403');
  expect(status.resources.conversations).toMatchObject({ records: 120, error: null });
  expect((await browser.get(`/instances/${id}`)).body).toContain('403');

  await control.clearFaults();
  await press(browser, id, 'sync');
  const repaired = await waitForStatus(browser, id, isSynced);
  expect(repaired.resources.contacts).toMatchObject({ records: 250, error: null });
});

test('a next page at another origin is refused, and the token does not go there', async () => {
  const company = await newCompany();
  const next = 'http://127.0.0.1:9/api/contacts?page_token=x';
  const body = { _pagination: { next }, _links: { self: next }, _results: [{ id: 'crd_1' }] };
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body },
    times: 1,
  });
  const browser = session();
  const id = await install(browser, company);
  const status = await waitForStatus(browser, id, ({ resources }) => resources.contacts?.state === 'failed');
  expect(status.resources.contacts?.error).toContain('SERVICE_NEXT_ORIGINS');
});

test('an empty page is not the end', async () => {
  const company = await newCompany();
  const next = `${testApp.sandbox.apiUrl}/contacts?limit=99`;
  const body = { _pagination: { next }, _links: { self: next }, _results: [] };
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body },
    times: 1,
  });
  const browser = session();
  const id = await install(browser, company);
  const status = await waitForStatus(browser, id, isSynced);
  expect(status.resources.contacts).toMatchObject({ records: 250, pages: 4 });
});

test('the next run tells what is new, changed and gone, and only that', async () => {
  const company = await newCompany();
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  const first = batches.filter(({ instanceId, resource }) => instanceId === id && resource === 'contacts');
  expect(first.flatMap(({ created }) => created).length).toBe(250);
  expect(first.flatMap(({ changed, deleted }) => [...changed, ...deleted])).toEqual([]);

  const kept = first.flatMap(({ created }) => created).slice(0, 100);
  const results = [{ ...kept[0], name: 'Renamed' }, ...kept.slice(1), { id: 'crd_new', name: 'New' }];
  const body = { _pagination: { next: null }, _links: { self: '' }, _results: results };
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body },
    times: 1,
  });
  batches.length = 0;
  const before = await readStatus(browser, id);
  await press(browser, id, 'sync');
  const after = await waitForStatus(
    browser,
    id,
    (now) => isSynced(now) && now.resources.contacts?.finished_at !== before.resources.contacts?.finished_at,
  );

  expect(after.resources.contacts).toMatchObject({ records: 101, deleted: 150, stored: 101 });
  const second = batches.filter(({ resource }) => resource === 'contacts');
  expect(second.flatMap(({ created }) => created)).toEqual([{ id: 'crd_new', name: 'New' }]);
  expect(second.flatMap(({ changed }) => changed).map(({ id: changedId }) => changedId)).toEqual([
    kept[0]?.id,
  ]);
  expect(second.flatMap(({ deleted }) => deleted).length).toBe(150);
  expect((await downloadIds(browser, id, 'contacts')).length).toBe(101);
});

test('own logic that fails holds its page back, says why, and the sync goes on when it works again', async () => {
  const company = await newCompany();
  const browser = session();
  ownLogicFails = true;
  const id = await install(browser, company);
  // Between two tries it is told as running.
  const held = await waitForStatus(
    browser,
    id,
    ({ resources }) => resources.contacts?.waiting_for === 'retry',
  );
  expect(held.resources.contacts).toMatchObject({ pages: 0, state: 'waiting' });
  expect(held.resources.contacts?.error).toContain('the warehouse is closed');
  ownLogicFails = false;
  const status = await waitForStatus(browser, id, isSynced);
  expect(status.resources.contacts).toMatchObject({ records: 250, error: null });
});

test('resuming what was complete starts nothing anew', async () => {
  const company = await newCompany();
  const browser = session();
  const id = await install(browser, company);
  const before = await waitForStatus(browser, id, isSynced);
  await press(browser, id, 'pause');
  await press(browser, id, 'resume');
  expect(await readStatus(browser, id)).toMatchObject({ status: 'active', resources: before.resources });
});

test('pause stops, resume goes on where it stopped, disconnect forgets the tokens', async () => {
  const company = await newCompany();
  const browser = session();
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { delay_ms: 300 },
    times: 9,
  });
  const id = await install(browser, company);
  await press(browser, id, 'pause');
  const paused = await waitForStatus(browser, id, ({ status }) => status === 'paused');
  expect(isSynced(paused)).toBe(false);
  await press(browser, id, 'resume');
  await waitForStatus(browser, id, isSynced);

  await press(browser, id, 'disconnect', { delete_data: 'on' });
  const gone = await readStatus(browser, id);
  expect(gone).toMatchObject({ status: 'disconnected', token: { access_expires_at: null } });
  expect(gone.resources.contacts?.stored).toBe(0);
  const asked = (await control.requests()).length;
  expect((await press(browser, id, 'sync').catch((error) => error)) instanceof Error).toBe(true);
  expect((await control.requests()).length).toBe(asked);

  expect(await install(browser, company)).toBe(id);
  const back = await waitForStatus(browser, id, isSynced);
  expect(back.resources.contacts).toMatchObject({ records: 250, stored: 250 });
});

test('a pause while deletions are marked: the run waits, and is told as waiting; it goes on where it stopped', async () => {
  const company = await newCompany();
  const browser = session();
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  // The service has no contacts any more, for this run.
  await control.fault({
    match: { path: '/contacts', company_id: company.id },
    fault: { status: 200, body: { _results: [], _pagination: { next: null } } },
    times: 1,
  });
  const deleted: unknown[] = [];
  onBatch = async (batch) => {
    if (batch.deleted.length > 0 && deleted.length === 0) await app.control.pause(id);
    deleted.push(...batch.deleted);
  };
  await press(browser, id, 'sync');
  const { resources } = await waitForStatus(
    browser,
    id,
    (now) => deleted.length > 0 && now.resources.contacts?.state !== 'running',
  );
  expect(resources.contacts).toMatchObject({ state: 'waiting', deleted: 0, stored: 250 });
  expect(deleted.length).toBe(100);
  onBatch = undefined;
  await press(browser, id, 'resume');
  const after = await waitForStatus(browser, id, isSynced);
  expect(after.resources.contacts).toMatchObject({ stored: 0, deleted: 250 });
});
