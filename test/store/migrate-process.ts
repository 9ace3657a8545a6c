import { openDatabase } from '../../src/store/open-database.ts';

/** Opens the database of the first argument as soon as the clock shows the second one: several do so at once. */
const [, , url = '', at] = process.argv;
while (Date.now() < Number(at)) {
  // Closer together than timers would wake them.
}
const db = await openDatabase(url);
const { length } = await db.selectFrom('instances').selectAll().execute();
await db.destroy();
process.stdout.write(`opened, ${length} instances\n`);
