import type Sqlite from 'better-sqlite3';

/** How often it is looked whether somebody has changed the schema, in milliseconds. */
const LOOK_EVERY_MS = 1_000;

/** Who reads looks again after so long, in milliseconds. */
const SEEN_FOR_MS = 100;

/** A newer version of the app has changed the schema: this one does not know what its data means any more. */
export class NewerSchemaError extends Error {
  /** @param names of the migrations that are not known here */
  constructor(names: readonly string[]) {
    super(
      `The database was changed by a newer version of this app (${names.join(', ')}), which this version does not know. ` +
        'It touches nothing. Start the newer version; or restore a backup from before the change as docs/operations.md says.',
    );
    this.name = 'NewerSchemaError';
  }
}

/**
 * Notices that a newer version of the app has migrated the database of a process that runs, as it happens during a
 * deploy. SQLite counts changes of the schema, and only after one are the migrations looked at.
 */
export class SchemaWatch {
  readonly #sqlite: Sqlite.Database;
  readonly #readVersion: Sqlite.Statement<[], number>;
  readonly #isKnown: (migration: string) => boolean;
  /** What the schema's count was when it was known in the end; undefined before that. */
  #knownVersion: number | undefined;
  #lookedAt = Number.NEGATIVE_INFINITY;

  constructor(sqlite: Sqlite.Database, isKnown: (migration: string) => boolean) {
    this.#sqlite = sqlite;
    this.#readVersion = sqlite.prepare<[], number>('pragma schema_version').pluck();
    this.#isKnown = isKnown;
  }

  /**
   * Within a transaction that writes, nobody can change it behind the answer.
   *
   * @throws NewerSchemaError
   */
  check(): void {
    const version = this.#readVersion.get();
    if (version !== this.#knownVersion) this.#checkMigrations(version);
    this.#lookedAt = performance.now();
  }

  #checkMigrations(version: number | undefined): void {
    const names = this.#sqlite
      .prepare<[], string>('select name from kysely_migration order by name')
      .pluck()
      .all()
      .filter((name) => !this.#isKnown(name));
    if (names.length > 0) throw new NewerSchemaError(names);
    this.#knownVersion = version;
  }

  /**
   * For who reads only: what comes of it is written under {@link check}. To look costs as much as a read.
   *
   * @throws NewerSchemaError
   */
  checkAtTimes(): void {
    if (performance.now() - this.#lookedAt >= SEEN_FOR_MS) this.check();
  }

  /**
   * Looks every second.
   *
   * @param onNewer told once
   * @returns a function that ends it
   */
  start(onNewer: (error: NewerSchemaError) => void): () => void {
    const timer = setInterval(() => {
      try {
        this.check();
      } catch (error) {
        // Other trouble with the database is told by those who need it.
        if (!(error instanceof NewerSchemaError)) return;
        clearInterval(timer);
        onNewer(error);
      }
    }, LOOK_EVERY_MS).unref();
    return () => clearInterval(timer);
  }
}
