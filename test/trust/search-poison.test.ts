import { sql } from 'kysely';
import { beforeAll, expect, test } from 'vitest';
import { joinDatabase } from '../../src/store/open-database.ts';
import type { RecordBatch } from '../../src/sync/own-logic.ts';
import type { SandboxCompany } from '../acceptance/support/sandbox-control.ts';
import { install, isSynced, readStatus, waitForStatus } from '../support/install.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { goodHeaders, startHostileService } from './hostile-service.ts';

/** As much as an answer may have. */
const LARGE = 31_000_000;

const told: RecordBatch[] = [];
const service = await startHostileService();
const { app, control, sandbox, session, env, log } = await startTestApp({
  env: { SERVICE_API_URL: `${service.origin}/api` },
  ownLogic: async (batch) => void told.push(batch),
});
service.lead(sandbox.origin);
const browser = session();

/** From now on the service has these contacts of a company. */
function serve({ id }: SandboxCompany, records: string[]): void {
  const page = Buffer.from(`{"_results":[${records.join(',')}],"_pagination":{"next":null}}`);
  service.answer(id, ({ response }) => response.writeHead(200, goodHeaders()).end(page));
}

async function installed(name: string, records: string[]) {
  const company = await control.addCompany({ name, plan: 'starter' });
  serve(company, records);
  const id = await install(browser, company);
  await waitForStatus(browser, id, isSynced);
  return { company, id };
}

const searched = async (id: string, word: string) =>
  (await browser.get(`/instances/${id}/contacts?q=${word}`)).body;

/** The ids of the records that a search finds, once all can be found. */
async function found(id: string, word: string): Promise<string[]> {
  await waitFor(async () => !(await searched(id, word)).includes('not searchable yet'));
  return [...(await searched(id, word)).matchAll(/<td class="id"><code>([^<]*)/g)].map(([, of = '']) => of);
}

/** Breaks the document of a record, as a damaged disk would. */
async function damage(instanceId: string, recordId: string, document: string): Promise<void> {
  const db = await joinDatabase(env.DATABASE_URL ?? '');
  await sql`update records set document = ${document} where id = ${recordId} and list in
    (select list from runs where instance_id = ${instanceId})`.execute(db);
  await db.destroy();
}

let large: { id: string };
beforeAll(async () => {
  large = await installed('Large', [
    '{"id":"before","name":"findme"}',
    `{"id":"large","name":"${'a '.repeat(LARGE / 2)}"}`,
    '{"id":"behind","name":"findme"}',
  ]);
});

test('a record of many megabytes of words is searchable by its first ones, and stops the search of nobody', async () => {
  const other = await installed('Other', ['{"id":"other","name":"findme"}']);
  expect(await found(other.id, 'findme')).toEqual(['other']);
  expect(await found(large.id, 'findme')).toEqual(['before', 'behind']);
  expect(await found(large.id, 'a')).toEqual(['large']);
  expect(log.lines.filter(({ msg }) => msg?.includes('search index'))).toEqual([]);
});

test('its page and the list show its beginning, and say where all of it is', async () => {
  const page = await browser.get(`/instances/${large.id}/contacts/large`);
  expect(page.body).toContain('Only its first 100,000 characters are shown.');
  expect(page.body.length).toBeLessThan(1_000_000);
  const list = await browser.get(`/instances/${large.id}/contacts`);
  expect(list.body).toContain(`/instances/${large.id}/contacts/large`);
  expect(list.body.length).toBeLessThan(100_000);
  const download = await browser.get(`/instances/${large.id}/contacts.ndjson`);
  expect(download.body.length).toBeGreaterThan(LARGE);
});

test('a record whose document is damaged is shown, and marked deleted like any other; the own logic is told of the others', async () => {
  const { company, id } = await installed('Damaged', [
    '{"id":"first"}',
    '{"id":"broken"}',
    '{"id":"gone"}',
    '{"id":"last"}',
  ]);
  await damage(id, 'broken', '{"id":"brok');
  for (const path of ['', '/broken']) {
    expect((await browser.get(`/instances/${id}/contacts${path}`)).status).toBe(200);
  }
  const last = (await readStatus(browser, id)).resources.contacts?.finished_at;
  serve(company, ['{"id":"first"}', '{"id":"last"}']);
  await app.control.syncNow(id);
  const { resources } = await waitForStatus(
    browser,
    id,
    (status) => isSynced(status) && status.resources.contacts?.finished_at !== last,
  );
  expect(resources.contacts).toMatchObject({ stored: 2, deleted: 2, error: null });
  expect(told.filter(({ instanceId }) => instanceId === id).flatMap(({ deleted }) => deleted)).toEqual([
    { id: 'gone' },
  ]);
  const lines = log.lines.filter(({ msg }) => msg?.startsWith('deleted records cannot be read'));
  expect(lines).toMatchObject([{ level: 'warn', instanceId: id, seqs: [expect.any(Number)] }]);
  const page = await browser.get(`/instances/${id}/contacts/broken`);
  expect(page.body).toContain('no longer has this record');
});
