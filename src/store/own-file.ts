import { type BigIntStats, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { explainTrouble, isDamage } from './trouble.ts';

const ADVICE =
  'what is written now would be lost. End every process of the app, put the right file in its place, or restore a backup as docs/operations.md says, and start again.';

/** The file that a process has open is not the one at its path any more: nobody else would find what it writes. */
export class LostFileError extends Error {
  constructor(what: string) {
    super(`The database file ${what} while the app was running: ${ADVICE}`);
    this.name = 'LostFileError';
  }
}

/**
 * The file of a database that a process has open. SQLite goes on with it as if nothing were, also when it has been removed,
 * or something else is in its place: a backup, or a volume that was mounted.
 */
export class OwnFile {
  readonly #path: string;
  readonly #opened: BigIntStats | undefined;
  #loss: LostFileError | undefined;
  /** An error that said that the file is damaged, wherever in it: it stays so. */
  #damage: unknown;

  /** To be made when the file is open: opening it for writing may make another one of it, in the layers of a container. */
  constructor(path: string) {
    this.#path = resolve(path);
    this.#opened = this.#find();
  }

  /** Takes note of what an error of SQLite's says of the file, and has it say what to do: see {@link explainTrouble}. */
  explain(error: unknown): unknown {
    if (isDamage(error)) this.#damage = error;
    return explainTrouble(error);
  }

  /** @throws Error that says what is wrong with the file for as long as it is open, and what to do */
  check(): void {
    if (this.#damage !== undefined) throw this.#damage;
    this.checkPlace();
  }

  /**
   * For whoever is about to write. A file that has been away once is given up, as nobody knows who has made another one
   * meanwhile, or written into it.
   *
   * @throws LostFileError
   */
  checkPlace(): void {
    this.#loss ??= this.#findLoss();
    if (this.#loss !== undefined) throw this.#loss;
  }

  #findLoss(): LostFileError | undefined {
    const found = this.#find();
    if (found === undefined) return new LostFileError('has been removed');
    const isSame = found.ino === this.#opened?.ino && found.dev === this.#opened.dev;
    return isSame ? undefined : new LostFileError('has been replaced by another');
  }

  #find(): BigIntStats | undefined {
    return statSync(this.#path, { bigint: true, throwIfNoEntry: false });
  }
}
