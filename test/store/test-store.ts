import { sql } from 'kysely';
import { afterAll } from 'vitest';
import { readListPage } from '../../src/client/list-page.ts';
import type { ReadPage } from '../../src/client/service-api.ts';
import type { Database } from '../../src/store/database.ts';
import { DeletionStore } from '../../src/store/deletions.ts';
import { InDoubtStore } from '../../src/store/in-doubt.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import { PageStore } from '../../src/store/pages.ts';
import { ParkedStore } from '../../src/store/parked-batches.ts';
import { QuarantineStore } from '../../src/store/quarantine.ts';
import { RecordStore } from '../../src/store/records.ts';
import { type Run, type RunKey, RunStore } from '../../src/store/runs.ts';
import { SearchIndex } from '../../src/store/search-index.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { installInstance } from '../support/install-instance.ts';
import { tempDir } from '../support/temp-dir.ts';

export const NOW = Date.UTC(2026, 2, 1, 12, 0, 0);

/** Every store on a new database file. */
export interface TestStore {
  url: string;
  db: Database;
  instances: InstanceStore;
  tokens: TokenStore;
  runs: RunStore;
  pages: PageStore;
  records: RecordStore;
  deletions: DeletionStore;
  parked: ParkedStore;
  inDoubt: InDoubtStore;
  quarantine: QuarantineStore;
  /** Installs a new company, or one anew; answers its instance's id. */
  addInstance(again?: string): Promise<string>;
  /** A run of a new instance (or of a given one), claimed by a worker. */
  claimRun(key?: RunKey): Promise<{ run: Run; claim: RunKey & { fence: number } }>;
  /** Writes a page of these documents, as texts. */
  write(
    claim: RunKey & { fence: number },
    documents: string[],
    options?: { next?: string; now?: number },
  ): Promise<Run | undefined>;
  /** How many records a copy holds, without the deleted ones; counted, as `stored` is not. */
  count(instanceId: string, resource: string): Promise<number>;
  /** Works off what the search index does not know yet. */
  index(): Promise<void>;
  /** How many parts the search index consists of. */
  countIndexParts(): Promise<number>;
  /** Disconnects an instance, and removes its copy. */
  removeCopy(instanceId: string): Promise<void>;
  /** Marks records as deleted, by their ids. */
  remove(claim: RunKey & { fence: number }, ids: string[], now: number): Promise<boolean>;
}

/** A page of these documents, as the client reads it. */
export function pageOf(documents: string[], next: string | null = null): ReadPage {
  const text = `{"_results":[${documents.join(',')}],"_pagination":{"next":${JSON.stringify(next)}}}`;
  return { next, ...readListPage(Buffer.from(text)).read() };
}

/** Opens a new database, or the one at a path; it is closed when the test file is through. */
export async function openTestStore(path = `${tempDir()}/app.db`): Promise<TestStore> {
  const url = `file:${path}`;
  const db = await openDatabase(url);
  afterAll(async () => {
    await records.close();
    await db.destroy();
  });
  const tokens = new TokenStore(db);
  const records = new RecordStore(db);
  const runs = new RunStore(db);
  const pages = new PageStore(db);
  const deletions = new DeletionStore(db);
  const searchIndex = new SearchIndex(db);
  let count = 0;
  const addInstance = async (again?: string) => {
    count += 1;
    const id = again ?? `ins_${count}`;
    const moments = {
      access_expires_at: NOW,
      refresh_issued_at: NOW,
      refresh_due_at: NOW,
      refreshed_at: NOW,
    };
    await installInstance(db, { id, name: `Company ${count}` }, NOW + count, moments);
    return id;
  };
  return {
    url,
    db,
    instances: new InstanceStore(db),
    tokens,
    runs,
    pages,
    records,
    deletions,
    parked: new ParkedStore(db),
    inDoubt: new InDoubtStore(db),
    quarantine: new QuarantineStore(db),
    addInstance,
    async claimRun(key) {
      const ofRun = key ?? { instanceId: await addInstance(), resource: 'contacts' };
      await runs.start(ofRun, NOW);
      const run = await runs.claim(ofRun);
      if (run === undefined) throw new Error('the run could not be claimed');
      return { run, claim: { ...ofRun, fence: run.fence } };
    },
    async write(claim, documents, { next, now = NOW } = {}) {
      const page = pageOf(documents, next);
      const key = { instance_id: claim.instanceId, resource: claim.resource };
      return pages.commit(claim, page, await pages.compare(key, page), now);
    },
    async count(instanceId, resource) {
      const row = await db
        .selectFrom('records')
        .innerJoin('runs', 'runs.list', 'records.list')
        .select((select) => select.fn.countAll<number>().as('total'))
        .where('instance_id', '=', instanceId)
        .where('resource', '=', resource)
        .where('deleted_at', 'is', null)
        .executeTakeFirstOrThrow();
      return row.total;
    },
    async index() {
      while ((await searchIndex.indexPortion(1_000)) !== undefined) {
        // Until the queue is empty.
      }
    },
    async countIndexParts() {
      return (await sql`select distinct segid from search_idx`.execute(db)).rows.length;
    },
    async removeCopy(instanceId) {
      await tokens.disconnect(instanceId, { deleteData: true });
      await records.finishRemoval(instanceId);
    },
    async remove(claim, ids, now) {
      const rows = await db
        .selectFrom('records')
        .innerJoin('runs', 'runs.list', 'records.list')
        .select('seq')
        .where('instance_id', '=', claim.instanceId)
        .where('resource', '=', claim.resource)
        .where('id', 'in', ids)
        .execute();
      return deletions.mark(
        claim,
        rows.map(({ seq }) => seq),
        now,
      );
    },
  };
}
