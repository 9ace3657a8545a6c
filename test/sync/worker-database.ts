import type { Transaction } from 'kysely';
import { afterAll } from 'vitest';
import { Database, StoreError } from '../../src/store/database.ts';
import { openDatabase } from '../../src/store/open-database.ts';
import type { Schema } from '../../src/store/schema.ts';

/** The end of a worker, or of its database, at its n-th commit. */
export interface Crash {
  at: number;
  how: 'before' | 'after' | 'taken back';
}

/** A commit of the database that a crash took back, though its worker believes in it. */
class TakenBack extends Error {
  readonly result: unknown;

  constructor(result: unknown) {
    super('taken back');
    this.result = result;
  }
}

/** The database of a worker that may die. */
export class WorkerDatabase extends Database {
  crash: Crash | undefined;
  onCommit = async (): Promise<void> => {};
  #isDead = false;

  revive(crash: Crash | null): void {
    this.#isDead = false;
    this.crash = crash === null ? undefined : { ...crash };
  }

  override async transact<T>(work: (tx: Transaction<Schema>) => Promise<T>): Promise<T> {
    const how = this.crash !== undefined && --this.crash.at === 0 ? this.crash.how : undefined;
    if (how === 'before') this.#isDead = true;
    if (this.#isDead) throw new StoreError('The worker is dead.');
    if (how === 'taken back') {
      const lost = async (tx: Transaction<Schema>) => Promise.reject(new TakenBack(await work(tx)));
      return super.transact<never>(lost).catch((error) => {
        if (error instanceof TakenBack) return error.result as T;
        throw error;
      });
    }
    const result = await super.transact(work);
    await this.onCommit();
    if (how === 'after') this.#isDead = true;
    if (this.#isDead) throw new StoreError('The worker is dead.');
    return result;
  }
}

/** Opens a test's database for a worker that may die. */
export async function openWorkerDatabase(url: string): Promise<WorkerDatabase> {
  const db = new WorkerDatabase((await openDatabase(url)).dialect);
  afterAll(() => db.destroy());
  return db;
}
