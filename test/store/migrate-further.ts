import type Sqlite from 'better-sqlite3';

/** What a migration of a newer version writes last. */
export const NEXT = "insert into kysely_migration values ('9000-next', '2030-01-01T00:00:00.000Z')";

/** What a newer version's migration does, in one transaction. */
export function migrateFurther(db: Sqlite.Database): void {
  db.transaction(() => {
    db.exec('alter table records add column remark text');
    db.exec(NEXT);
  })();
}
