import { openDatabase } from '../../src/store/open-database.ts';

/** Writes into the database of the first argument, copies a part of its log, and holds it open until it is killed. */
const [, , url] = process.argv;
if (url === undefined) throw new Error('the address of a database is needed');
const db = await openDatabase(url);
for (const part of ['a', 'b', 'c']) {
  const ids = Array.from({ length: 200 }, (_, n) => `late_${part}${n}`);
  const rest = { name: 'Late', status: 'active', notice: null, installed_at: 1 } as const;
  await db
    .insertInto('instances')
    .values(ids.map((id) => ({ id, company_id: id, ...rest })))
    .execute();
  if (part !== 'c') db.copyLog();
}
process.stdout.write('written\n');
// It names the database: one that nobody has any more is closed with the garbage, and its log goes with it.
setInterval(() => db.url, 60_000);
