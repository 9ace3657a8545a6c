import { sql } from 'kysely';
import { afterAll, describe, expect, test } from 'vitest';
import type { ChangeBatch } from '../../src/changes/change-handler.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { openStores } from '../../src/store/stores.ts';
import type { FaultOrder } from '../acceptance/support/sandbox-control.ts';
import { type Company, TestSandbox } from '../sandbox/support/test-sandbox.ts';
import { collect, DATABASES } from '../store/test-store.ts';
import { installCompany } from '../support/install-company.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';

/** Six pages of contacts, or more: the service may send short ones. */
const CONTACTS = 550;

describe.each(DATABASES)('on %s', async (kind) => {
  const batches: ChangeBatch[] = [];
  const testApp = await startTestApp({
    web: false,
    sandbox: { latencyMs: 20 },
    database: kind,
    handler: async (batch) => void batches.push(batch),
  });
  const { app, config, control } = testApp;
  const service = new TestSandbox(testApp.sandbox);
  const db = await openDatabase(config.databaseUrl);
  const { runs, records } = openStores(db);
  afterAll(() => db.destroy());

  /** A company right after its install. */
  async function installed({ conversations = 0 } = {}) {
    const { id, company } = await installCompany(testApp, db, { contacts: CONTACTS, conversations });
    const { items, pages } = await ofService(company);
    const runOf = async (resource = 'contacts') => {
      const list = (await runs.lists(id)).find((one) => one.resource === resource);
      return list?.run;
    };
    return {
      id,
      company,
      pages,
      runOf,
      /** The copy equals the service's list. */
      expectCopy: async () =>
        expect(
          byId((await collect(records.stream(id, 'contacts'))).map(({ document }) => JSON.parse(document))),
        ).toEqual(byId(items)),
      finished: (resource?: string) =>
        waitFor(async () => (await runOf(resource))?.state === 'finished' && runOf(resource)),
    };
  }
  /** The app's requests for pages of contacts, in order. */
  async function requestsOf({ id }: Company) {
    const all = await control.requests();
    return all.filter((row) => row.path === '/contacts' && row.company_id === id && row.application !== null);
  }
  /** All contacts of the service, and their pages. */
  async function ofService({ api_tokens: [own] }: Company) {
    const items: { id: string }[] = [];
    let pages = 0;
    for (let path: string | null = '/contacts?limit=100'; path !== null; ) {
      const { body } = await service.call('GET', path, own?.token ?? '');
      const page = body as { _results: { id: string }[]; _pagination: { next: string | null } };
      items.push(...page._results);
      pages++;
      path = page._pagination.next;
    }
    return { items, pages };
  }
  const byId = (items: readonly { id: string }[]) => new Map(items.map((item) => [item.id, item]));
  const noneActive = () => waitFor(async () => (await app.queues.syncCounts()).active === 0);

  test('a first run copies the list page by page, and the handler gets all of it', async () => {
    const { id, company, pages, finished, expectCopy } = await installed();
    await app.control.syncNow(id);
    expect(await finished()).toMatchObject({
      pages,
      records: CONTACTS,
      created: CONTACTS,
      seen: CONTACTS,
      requests: pages,
      held: 0,
      error_kind: null,
    });
    const requests = await requestsOf(company);
    expect(requests.map(({ status }) => status)).toEqual(Array(pages).fill(200));
    await expectCopy();
    const changes = () =>
      batches
        .filter(({ instanceId, resource }) => instanceId === id && resource === 'contacts')
        .flatMap((batch) => batch.changes.map((change) => change.id));
    await waitFor(() => changes().length === CONTACTS);
    expect(new Set(changes()).size).toBe(CONTACTS);

    // Another run brings nothing new.
    await app.control.syncNow(id);
    await waitFor(async () =>
      (await runs.lists(id)).every(({ run }) => run?.state === 'finished' && run.created === 0),
    );
    expect(changes()).toHaveLength(CONTACTS);
  });

  test('a pause stops before the next request, and the resumed run continues', async () => {
    const { id, company, pages, runOf, finished, expectCopy } = await installed();
    await app.control.syncNow(id);
    await waitFor(async () => ((await runOf())?.pages ?? 0) >= 1);
    expect(await app.control.pause(id)).toBe(true);
    const paused = (await runOf()) ?? expect.unreachable();
    await noneActive();
    expect(await runOf()).toEqual(paused);
    expect(paused.pages).toBeLessThan(pages);
    expect((await requestsOf(company)).length).toBeLessThanOrEqual(paused.pages + 2);
    expect(await app.control.syncNow(id)).toBe(false);
    expect(await app.control.resume(id)).toBe(true);
    expect(await finished()).toMatchObject({ id: paused.id, pages, created: CONTACTS });
    await expectCopy();
  });

  test.each([
    ['the company waits a quarter of an hour', {}, 15 * 60_000],
    ['a guard gets all of it', { 'x-service-tier': 'contacts' }, 7_200_000],
  ])('a wait of two hours is no failure: %s', async (_what, headers, waitMs) => {
    const { id, company, runOf } = await installed();
    const fault = { status: 429, headers: { ...headers, 'retry-after': '7200' } };
    await control.fault({ match: { path: '/contacts', company_id: company.id }, fault });
    await app.control.syncNow(id);
    const run = await waitFor(async () => {
      const found = await runOf();
      return found?.waiting_for === 'limit' && found.refused === 1 && found;
    });
    expect(run).toMatchObject({ state: 'waiting', attempt: 0, error_kind: null });
    expect((run.wait_until ?? 0) - Date.now()).toBeGreaterThan(waitMs - 60_000);
    expect((run.wait_until ?? 0) - Date.now()).toBeLessThanOrEqual(waitMs);
    const list = (await runs.lists(id)).find(({ resource }) => resource === 'contacts');
    expect(list?.failing_since).toBeNull();
  });

  if (kind === 'sqlite') {
    // What the service does is the same to both databases.
    test.each<[string, FaultOrder['fault']]>([
      ['a rejected token', { status: 401 }],
      ['the limit', { status: 429, headers: { 'retry-after': '0.2' } }],
      ['a server error', { status: 500 }],
      ['a connection that breaks', { drop: 'before' }],
      ['a page without items', { status: 200, body: {} }],
    ])('%s for the next page leaves the page before as it is', async (_what, fault) => {
      const { id, company, pages, finished, expectCopy } = await installed();
      await control.fault({ match: { path: '/contacts', company_id: company.id, nth: 2 }, fault });
      await app.control.syncNow(id);
      expect(await finished()).toMatchObject({ pages, records: CONTACTS, created: CONTACTS, attempt: 0 });
      expect((await requestsOf(company)).length).toBe(pages + 1);
      await expectCopy();
    });
  } else {
    test('while a page is written the reader fetches only the next one', async () => {
      const { id, company, pages, runOf, finished } = await installed({ conversations: 450 });
      const open = (await runs.start(id, ['contacts', 'conversations'], Date.now())) ?? expect.unreachable();
      await db.transact(async (transaction) => {
        await sql`select id from lists where instance_id = ${id} and resource = 'contacts' for update`.execute(
          transaction,
        );
        await app.queues.enqueueRuns(open, { now: true });
        await waitFor(async () => (await requestsOf(company)).length === 2);
        // The other list comes to its end meanwhile.
        await finished('conversations');
        expect((await requestsOf(company)).length).toBe(2);
        expect(await runOf()).toMatchObject({ state: 'running', pages: 0 });
      });
      expect(await finished()).toMatchObject({ pages });
      expect((await requestsOf(company)).length).toBe(pages);
    });
  }
});
