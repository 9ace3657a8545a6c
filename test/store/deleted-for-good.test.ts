import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Sqlite from 'better-sqlite3';
import { sql } from 'kysely';
import { expect, test } from 'vitest';
import { openDatabase } from '../../src/store/open-database.ts';
import { RemovalStore } from '../../src/store/removals.ts';
import { installInstance } from '../support/install-instance.ts';
import { tempDir } from '../support/temp-dir.ts';
import { runDocumented } from './operations-page.ts';
import { NOW, openTestStore, type TestStore } from './test-store.ts';

const PAGES = 100;
const PER_PAGE = 20;

/** Of records that take a part of a page, and now and then several pages. */
function documents(company: string, page: number): string[] {
  return Array.from({ length: PER_PAGE }, (_, at) => {
    const n = page * PER_PAGE + at;
    const note = 'lorem ipsum '.repeat(n % 200 === 0 ? 1_000 : (n * 7) % 31);
    return `{"id":"${(n * 7_919) % 10_007}","email":"${company}-${n}@mail.example","note":"${note}"}`;
  });
}

/** The encrypted tokens of a company; no two are alike. */
const sealed = (company: string) => [`${company}.sealed.access.`, `${company}.sealed.refresh.`];

/** Two companies whose pages came in turns, and were indexed meanwhile; the instance of the one that is to go. */
async function addCompanies(store: TestStore): Promise<{ gone: string; kept: string }> {
  const claims = [];
  for (const company of ['gone', 'kept']) {
    const { claim } = await store.claimRun();
    const [access_token = '', refresh_token = ''] = sealed(company).map((text) => text.padEnd(300, 'x'));
    const instance = { id: claim.instanceId, company_id: company, name: company };
    await installInstance(store.db, instance, NOW, { access_token, refresh_token });
    claims.push({ company, claim });
  }
  for (let page = 0; page < PAGES; page++) {
    for (const { company, claim } of claims) {
      await store.write(claim, documents(company, page), { next: `https://x.example/p${page}` });
    }
    if (page % 10 === 0) await store.index();
  }
  await store.index();
  const [gone = '', kept = ''] = claims.map(({ claim }) => claim.instanceId);
  return { gone, kept };
}

/** Everything that a file holds of a company, each text once. */
function found(path: string, company: string): string[] {
  const bytes = readFileSync(path).toString('latin1');
  const addresses = bytes.match(new RegExp(`${company}-\\d+@mail`, 'g')) ?? [];
  return [...new Set(addresses), ...sealed(company).filter((text) => bytes.includes(text))];
}

/** As when the last process has ended. */
async function end(store: TestStore): Promise<void> {
  await store.records.close();
  await store.db.destroy();
}

/** The other company's copy is whole, and so is the database. */
async function checkKept(path: string, kept: string): Promise<void> {
  const store = await openTestStore(path);
  const part = { offset: 0, limit: 5 };
  expect(await store.count(kept, 'contacts')).toBe(PAGES * PER_PAGE);
  expect(await store.records.browse(kept, 'contacts', { ...part, search: 'kept' })).toMatchObject({
    total: PAGES * PER_PAGE,
  });
  expect(await store.records.browse(kept, 'contacts', { ...part, search: 'kept-1234@mail' })).toMatchObject({
    total: 1,
  });
  await sql`insert into search (search) values ('integrity-check')`.execute(store.db);
  await end(store);
  const sqlite = new Sqlite(path);
  expect(sqlite.pragma('integrity_check', { simple: true })).toBe('ok');
  sqlite.close();
}

test.each<[string, (store: TestStore, instanceId: string) => Promise<void>]>([
  ['at once', (store, id) => store.records.finishRemoval(id)],
  [
    'by another process, after some of it was removed',
    async (store, id) => {
      const first = new RemovalStore(store.db);
      for (let portion = 0; portion < 6; portion++) await first.resume();
      expect(await store.count(id, 'contacts')).toBeLessThan(PAGES * PER_PAGE);
      const second = new RemovalStore(store.db);
      while (await second.resume());
    },
  ],
])(
  'a copy that was removed %s, and its tokens, are neither in the files of the database nor in a backup',
  async (_how, remove) => {
    const database = join(tempDir(), 'app.db');
    const store = await openTestStore(database);
    const { gone, kept } = await addCompanies(store);
    await store.tokens.disconnect(gone, { deleteData: true });
    await remove(store, gone);
    const whileOpen = join(tempDir(), 'backup.db');
    await runDocumented('Back up', { database, backup: whileOpen });
    await end(store);

    expect(existsSync(`${database}-wal`)).toBe(false);
    const backup = join(tempDir(), 'backup.db');
    await runDocumented('Back up', { database, backup });
    for (const path of [database, backup, whileOpen]) {
      expect(found(path, 'gone')).toEqual([]);
      expect(found(path, 'kept')).toHaveLength(PAGES * PER_PAGE + 2);
    }
    await checkKept(database, kept);
  },
);

test('what versions before have left in the file, and the words of the search, go by the documented command', async () => {
  const database = join(tempDir(), 'app.db');
  const store = await openTestStore(database);
  await sql`pragma secure_delete = off`.execute(store.db);
  const { gone, kept } = await addCompanies(store);
  await store.tokens.disconnect(gone);
  for (const [table, number] of [
    ['search', 'rowid'],
    ['records', 'seq'],
  ]) {
    await sql`delete from ${sql.table(table ?? '')} where ${sql.ref(number ?? '')} in (
      select seq from records join runs using (list) where instance_id = ${gone})`.execute(store.db);
  }
  await end(store);
  const words = /gone\d* |[0-9a-f]{8}gone/;
  expect(found(database, 'gone').length).toBeGreaterThan(100);
  expect(readFileSync(database).toString('latin1')).toMatch(words);

  await runDocumented('Delete for good', { database, backup: '' });
  expect(found(database, 'gone')).toEqual([]);
  expect(readFileSync(database).toString('latin1')).not.toMatch(words);
  expect(existsSync(`${database}-wal`)).toBe(false);
  await checkKept(database, kept);
  await (await openDatabase(`file:${database}`)).destroy();
});
