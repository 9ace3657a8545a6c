import { sql } from 'kysely';
import { afterAll, describe, expect, test } from 'vitest';
import type { Company } from '../../src/sandbox/types.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { openStores } from '../../src/store/stores.ts';
import type { FaultOrder } from '../acceptance/support/sandbox-control.ts';
import { TestSandbox } from '../sandbox/support/test-sandbox.ts';
import { collect, DATABASES, openTestStore } from '../store/test-store.ts';
import { installCompany } from '../support/install-many.ts';
import { startTestApp } from '../support/test-app.ts';
import { waitFor } from '../support/wait-for.ts';
import { openList } from './list-service.ts';

/** Six pages of contacts, or more: the service may send short ones. */
const CONTACTS = 550;

describe.each(DATABASES)('on %s', async (kind) => {
  const testApp = await startTestApp({ web: false, sandbox: { latencyMs: 20 }, database: kind });
  const { app, config, control } = testApp;
  const service = new TestSandbox(testApp.sandbox);
  const db = await openDatabase(config.databaseUrl);
  const { runs, records } = openStores(db);
  afterAll(() => db.destroy());

  /** A company right after its install. */
  async function installed() {
    const { id, company } = await installCompany(testApp, db, { contacts: CONTACTS, conversations: 0 });
    const { items, pages } = await ofService(company);
    const runOf = async () => (await runs.lists(id)).find(({ resource }) => resource === 'contacts')?.run;
    return {
      ...{ id, company, pages, runOf },
      /** The copy equals the service's list. */
      expectCopy: async () =>
        expect(
          byId((await collect(records.stream(id, 'contacts'))).map(({ document }) => JSON.parse(document))),
        ).toEqual(byId(items)),
      finished: () => waitFor(async () => (await runOf())?.state === 'finished' && runOf()),
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
      expect((await requestsOf(company)).length).toBe(pages + 2);
      await expectCopy();
    });
  } else {
    test('while a page is written the reader fetches only the next one', async () => {
      const store = await openTestStore(kind);
      const { service, key, run } = await openList(store, { records: 9 });
      const written = Promise.withResolvers<void>();
      service.onAnswer = async () => {
        if (service.requests.length > 1) return;
        const locked = Promise.withResolvers<void>();
        const lock = store.db.transact(async (tx) => {
          await sql`select id from lists where instance_id = ${key.instanceId} for update`.execute(tx);
          locked.resolve();
          await written.promise;
        });
        await Promise.race([locked.promise, lock]);
      };
      const running = run();
      await waitFor(() => service.requests.length === 2);
      await store.waitForLocks(1);
      expect(service.requests).toHaveLength(2);
      written.resolve();
      expect(await running).toMatchObject({ state: 'finished', pages: 3 });
    });
  }
});
