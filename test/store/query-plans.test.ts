import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { DeletionStore } from '../../src/store/deletions.ts';
import { failedWith } from '../../src/store/failed-runs.ts';
import { InstanceStore } from '../../src/store/instances.ts';
import { PageStore } from '../../src/store/pages.ts';
import { RecordStore } from '../../src/store/records.ts';
import { RemovalStore } from '../../src/store/removals.ts';
import { RunStore } from '../../src/store/runs.ts';
import { Search } from '../../src/store/search.ts';
import { SearchIndex } from '../../src/store/search-index.ts';
import { TokenStore } from '../../src/store/tokens.ts';
import { NOW, openTestStore, pageOf } from './test-store.ts';

/** What goes through a whole table, as every row of it counts, or as the first one does. */
const MAY_SCAN = [
  // The list of all instances, and those of them whose runs are due.
  /^select \* from "instances" order by "installed_at", "id" limit \? offset \?$/,
  /^select "instances"\."id" from "instances" left join "runs"/,
  // The grants that are due, one row a company: among them those that were noted by a wrong clock, which no order shows.
  /^select "tokens"\."instance_id", "version" from "tokens" inner join "instances"/,
  // Those that are over, once at a start.
  /^select "instance_id", "version", "access_token", "refresh_token", "notice" from "instances" inner join "tokens"/,
  // The oldest entry of a queue.
  /from search_queue join runs using \(list\) where place > \? order by place limit 1$/,
  /from removals limit 1$/,
  // A row for each migration, and only after the schema has changed.
  /^select name from kysely_migration /,
  // A row for each table and index, at a start and where tokens do not open.
  /^select name from sqlite_master where type = 'table' and name = \?$/,
];

const store = await openTestStore();
const { db } = store;

/** Every statement that is prepared from now on. */
function watchStatements(): Set<string> {
  const sources = new Set<string>();
  const { database } = db.prepare('select 1');
  const prepare = database.prepare.bind(database);
  database.prepare = ((source: string) => {
    sources.add(source.trim().replace(/\s+/g, ' '));
    return prepare(source);
  }) as typeof prepare;
  return sources;
}

test('no query of the dashboard, the sync or the upkeep goes through a whole table', async () => {
  const sources = watchStatements();
  const [instances, tokens, runs, pages] = [
    new InstanceStore(db),
    new TokenStore(db),
    new RunStore(db),
    new PageStore(db),
  ];
  const [records, deletions] = [new RecordStore(db), new DeletionStore(db)];
  new SearchIndex(db);
  new RemovalStore(db);

  const { claim, run } = await store.claimRun();
  const page = pageOf(['{"id":"1"}']);
  await pages.commit(claim, page, await pages.compare(run, page), NOW);
  await deletions.unseen(claim, 0, 10);
  await instances.list({ offset: 0, limit: 100 });
  await instances.find(claim.instanceId);
  await instances.setStatus(claim.instanceId, 'active', { from: ['active'] });
  await tokens.find(claim.instanceId);
  await tokens.due(NOW);
  await failedWith(db, ['x', 'y']);
  await runs.find(claim);
  await runs.list(claim.instanceId);
  await runs.unfinished();
  await runs.due('contacts', NOW, NOW);
  await runs.wait(claim, { for: 'turn', until: null });
  await runs.fail(claim, { error: 'x', keepsPlace: true, now: NOW });
  await runs.start(claim, NOW);
  await runs.finish(claim, NOW);
  await runs.start(claim, NOW);
  await records.find(claim.instanceId, 'contacts', '1');
  const part = { offset: 0, limit: 5 };
  await records.browse(claim.instanceId, 'contacts', part);
  await new Search(db).find({ instanceId: claim.instanceId, resource: 'contacts', typed: 'x', ...part });
  for await (const document of records.stream(claim.instanceId, 'contacts'))
    expect(document).toBe('{"id":"1"}');
  await tokens.disconnect(claim.instanceId, { deleteData: true });
  await records.finishRemoval(claim.instanceId);

  expect(sources.size).toBeGreaterThan(40);
  const scans: string[] = [];
  for (const source of sources) {
    if (
      !/^(select|insert|update|delete|with)/.test(source) ||
      MAY_SCAN.some((allowed) => allowed.test(source))
    )
      continue;
    const { rows } = await sql
      .raw<{ detail: string }>(`explain query plan ${source.replace(/[?]|:\w+/g, '1')}`)
      .execute(db);
    for (const { detail } of rows) {
      if (
        /^SCAN (?!search VIRTUAL|json_each|\d+-ROW VALUES|(\d+ )?CONSTANT ROWS?|fresh|segments|\(subquery)|TEMP B-TREE/.test(
          detail,
        )
      )
        scans.push(`${detail}: ${source}`);
    }
  }
  expect(scans).toEqual([]);
});

test('records in their order, and those between two, are read from the index of live ones', async () => {
  for (const where of ['', 'and seq > 5', 'and seq > 5 and seq < 9']) {
    const { rows } = await sql
      .raw<{ detail: string }>(
        `explain query plan select * from records where list = 1 and deleted_at is null
         ${where} order by seq limit 5`,
      )
      .execute(db);
    expect(rows.map(({ detail }) => detail)).toEqual([
      expect.stringMatching(/^SEARCH records USING INDEX records_live/),
    ]);
  }
});
