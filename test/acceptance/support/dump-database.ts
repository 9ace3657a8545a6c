import Sqlite from 'better-sqlite3';

/** Reads all rows of a SQLite database but those of search indexes: a text, one row a line. */
export function dumpDatabase(path: string): string {
  const database = new Sqlite(path, { readonly: true });
  const tables = database
    .prepare("select name from sqlite_master where type = 'table' and sql not like '%virtual%'")
    .pluck()
    .all();
  const rows = tables.flatMap(
    (name) => database.prepare(`select * from "${name}"`).raw().all() as unknown[][],
  );
  database.close();
  const shown = (value: unknown) => (Buffer.isBuffer(value) ? value.toString('latin1') : String(value));
  return rows.map((row) => row.map(shown).join('\t')).join('\n');
}
