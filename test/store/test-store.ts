import { sql } from 'kysely';
import { afterAll } from 'vitest';
import { deliver } from '../../src/changes/delivery.ts';
import { searchConsumer } from '../../src/changes/search-consumer.ts';
import { readListPage } from '../../src/service/page.ts';
import { type FeedEntry, type HeldConsumer, SEARCH_CONSUMER } from '../../src/store/changes.ts';
import type { Database } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import type { FetchedPage } from '../../src/store/pages.ts';
import type { FullEnd, ListClaim, ListKey, ListStatus, NextStarts, Run } from '../../src/store/runs.ts';
import { openStores, type Stores } from '../../src/store/stores.ts';
import { installInstance } from '../support/install-instance.ts';
import { tempDir } from '../support/temp-dir.ts';
import { testLogger } from '../support/test-logger.ts';
import { createTestPostgres } from '../support/test-postgres.ts';
import { waitFor } from '../support/wait-for.ts';

export const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);

export type DatabaseKind = 'sqlite' | 'postgres';

/** What every test of the stores runs on; TEST_DATABASE=sqlite leaves PostgreSQL out. */
export const DATABASES: readonly DatabaseKind[] =
  process.env.TEST_DATABASE === 'sqlite' ? ['sqlite'] : ['sqlite', 'postgres'];

/** A claim with the list that it is for. */
export type TestClaim = ListClaim & ListKey;

/** The interval of full runs, in milliseconds. */
export const INTERVAL_MS = 60 * 60_000;

/** Every store on a new database. */
export interface TestStore extends Stores {
  url: string;
  db: Database;
  /** Installs a new company, or one again; answers its instance's id. */
  addInstance(again?: string): Promise<string>;
  /** The open run of a list, or a new one of a new instance, claimed. */
  claimRun(key?: ListKey): Promise<TestClaim>;
  /** Writes a page of these documents, as texts, at the run's cursor or at another one. */
  write(
    claim: ListClaim,
    documents: readonly string[],
    options?: { next?: string; from?: string | null; now?: number },
  ): Promise<Run | undefined>;
  /** A full run over these documents, without its deletions. */
  copy(documents: readonly string[], key?: ListKey): Promise<TestClaim>;
  /** Closes a full run, after an empty last page if it has none. The next one is due after {@link INTERVAL_MS}. */
  finish(
    claim: ListClaim,
    options?: Partial<FullEnd & NextStarts> & { now?: number },
  ): Promise<Run | undefined>;
  /** Marks what a run did not see. @returns how many records */
  markUnseen(claim: ListClaim, now?: number): Promise<number>;
  list(key: ListKey): Promise<ListStatus>;
  /** The browsers that see an instance. */
  whoSees(instanceId: string): Promise<Set<string>>;
  /** Takes a consumer over, even that of a suspect. @throws Error when it cannot be claimed */
  hold(key: ListKey, consumer?: string): Promise<HeldConsumer>;
  /** Makes a dead letter of the record behind the handler's cursor, or of another one. */
  bury(key: ListKey & { list: number }, id?: string, at?: number): Promise<HeldConsumer | undefined>;
  /** Brings the search index up to date with a list. */
  index(key: ListKey): Promise<void>;
  /** Resolves when so many transactions wait for another one. SQLite has one at a time anyway. */
  waitForLocks(count: number): Promise<void>;
  /** The whole feed of a list behind a number. */
  feed(list: number, after?: number): Promise<FeedEntry[]>;
}

/** A page of these documents, as the client reads it. */
export function pageOf(documents: readonly string[], next: string | null = null): FetchedPage {
  const text = `{"_results":[${documents.join(',')}],"_pagination":{"next":${JSON.stringify(next)}}}`;
  return { ...readListPage(text), requests: 1, refused: 0 };
}

/** As many documents, with these ids. */
export function documentsOf(count: number, prefix = ''): string[] {
  return Array.from({ length: count }, (_, n) => `{"id":"${prefix}${n}"}`);
}

/** All of a stream. */
export async function collect<Item>(stream: AsyncIterable<Item>): Promise<Item[]> {
  const items: Item[] = [];
  for await (const item of stream) items.push(item);
  return items;
}

/** The address of a new, empty database. */
export async function newDatabaseUrl(kind: DatabaseKind): Promise<string> {
  if (kind === 'sqlite') return `file:${tempDir()}/app.db`;
  const { url, drop } = await createTestPostgres();
  afterAll(drop);
  return url;
}

/** Opens a new database; it is closed when the test file is through. */
export async function openTestStore(kind: DatabaseKind): Promise<TestStore> {
  const url = await newDatabaseUrl(kind);
  const db = await openDatabase(url);
  afterAll(() => db.destroy());
  const stores = openStores(db);
  let count = 0;
  const store: TestStore = {
    ...stores,
    url,
    db,
    async addInstance(again) {
      count += 1;
      const id = again ?? `ins_${count}`;
      await installInstance(db, { id, name: `Company ${count}` }, NOW + count);
      return id;
    },
    async claimRun(given) {
      const key = given ?? { instanceId: await store.addInstance(), resource: 'contacts' };
      await stores.runs.start(key.instanceId, [key.resource], NOW);
      const { instanceId, resource } = key;
      const claimed = await stores.runs.claim({ instanceId, resource }, NOW);
      if (claimed === undefined) throw new Error('the run could not be claimed');
      return { instanceId, resource, ...claimed.claim };
    },
    async write(claim, documents, { next = null, from, now = NOW } = {}) {
      const cursor = from === undefined ? (await runOf(claim.run)).cursor : from;
      return (await stores.pages.commit(claim, cursor, pageOf(documents, next), now, 20))?.run;
    },
    async copy(documents, key) {
      const claim = await store.claimRun(key);
      await store.write(claim, documents);
      await store.finish(claim);
      return claim;
    },
    async finish(claim, { now = NOW, full_due_at = now + INTERVAL_MS, ...options } = {}) {
      const { pages: count, cursor } = await runOf(claim.run);
      if (count === 0 || cursor !== null) await store.write(claim, []);
      const end = { missing: 0, held: 0, heldRun: null, isRepeated: false, requests: 0, refused: 0 };
      const { check_due_at = null, check_every = 1, ...given } = options;
      return stores.runs.finish(claim, { ...end, ...given }, { full_due_at, check_due_at, check_every }, now);
    },
    async markUnseen(claim, now = NOW) {
      const portion = { beforeRun: claim.run, counter: claim.run, claim };
      let total = 0;
      for (let after: number | undefined = 0; after !== undefined; ) {
        const marked = await stores.deletions.markPortion(claim.list, portion, after, now);
        if (marked === 'lost') throw new Error('the claim is lost');
        total += marked.marked;
        after = marked.next;
      }
      return total;
    },
    async list({ instanceId, resource }) {
      const found = (await stores.runs.lists(instanceId)).find((list) => list.resource === resource);
      if (found === undefined) throw new Error('there is no such list');
      return found;
    },
    async whoSees(instanceId) {
      const access = db.selectFrom('access').select('browser_id').where('instance_id', '=', instanceId);
      return new Set((await access.where('is_ended', '=', 0).execute()).map(({ browser_id }) => browser_id));
    },
    async hold({ instanceId, resource }, consumer = 'handler') {
      const options = { whileActive: true, alone: true, now: Date.now() };
      const held = await stores.changes.claim({ instanceId, resource, consumer }, options);
      if (held === undefined || !('fence' in held)) throw new Error('the consumer cannot be claimed');
      return held;
    },
    async bury(key, id, at = NOW) {
      const held = await store.hold(key);
      const entries = await store.feed(key.list, id === undefined ? held.cursor : 0);
      const entry = entries.find((one) => one.id === (id ?? one.id));
      if (entry === undefined) throw new Error('there is no such record');
      return stores.changes.bury(held, entry, { kind: 'handler', detail: 'It is broken.' }, at);
    },
    async index({ instanceId, resource }) {
      const context = { logger: testLogger().logger, signal: new AbortController().signal, retryMs: [] };
      const key = { instanceId, resource, consumer: SEARCH_CONSUMER };
      const more = async () => {
        const delivered = await deliver(stores.changes, searchConsumer(db), key, context, { alone: true });
        return 'again' in delivered && delivered.again !== undefined;
      };
      while (await more());
    },
    async waitForLocks(wanted) {
      if (kind === 'sqlite') return;
      const waiting = sql<{ count: number }>`select count(*) as count from pg_stat_activity
        where datname = current_database() and wait_event_type = 'Lock'`;
      await waitFor(async () => (await waiting.execute(db)).rows[0]?.count === wanted, 'the locks');
    },
    async feed(list, after = 0) {
      const entries: FeedEntry[] = [];
      for (let cursor = after; ; cursor = entries.at(-1)?.seq ?? cursor) {
        const portion = await stores.changes.read(list, cursor);
        if (portion.length === 0) return entries;
        entries.push(...portion);
      }
    },
  };
  const runOf = (run: number) =>
    db.selectFrom('runs').selectAll().where('id', '=', run).executeTakeFirstOrThrow();
  return store;
}
