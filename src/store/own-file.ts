import { type BigIntStats, realpathSync, statSync } from 'node:fs';
import { resolve } from 'node:path';
import { Room } from './room.ts';
import { explainTrouble, isDamage } from './trouble.ts';

const ADVICE =
  'what is written now would be lost. End every process of the app, put the right file in its place, or restore a backup as docs/operations.md says, and start again.';

const ADVICE_ON_LOG =
  'a process that starts now would miss what it holds, and could damage the database. End every process of the app with SIGTERM, as the last one of them keeps all of it, and start again.';

/** What SQLite keeps beside the database: commits that are not copied into it yet, and who reads and writes. */
export const BESIDE = ['-wal', '-shm'];

/** Where what belongs to a database is, as SQLite keeps it: beside the file itself, also when its path is a link to it. */
export function besideDatabase(path: string, suffix: string): string {
  try {
    return realpathSync(path) + suffix;
  } catch {
    return path + suffix; // There is no database yet, or not any more.
  }
}

/** The file that a process has open is not the one at its path any more: nobody else would find what it writes. */
export class LostFileError extends Error {
  /** @param suffix of the file's name, where it is one of those beside the database */
  constructor(what: string, suffix = '') {
    const name = suffix === '' ? 'database file' : `database’s ${suffix} file`;
    super(`The ${name} ${what} while the app was running: ${suffix === '' ? ADVICE : ADVICE_ON_LOG}`);
    this.name = 'LostFileError';
  }
}

/**
 * The file of a database that a process has open. SQLite goes on with it as if nothing were, also when it has been removed,
 * or something else is in its place: a backup, or a volume that was mounted.
 */
export class OwnFile {
  /** By their suffixes. */
  readonly #paths: ReadonlyMap<string, string>;
  /** By their suffixes, too; those beside the database as they were found first, as they are made with the first access. */
  readonly #opened = new Map<string, BigIntStats>();
  readonly #room: Room;
  #loss: LostFileError | undefined;
  /** An error that said that the file is damaged, wherever in it: it stays so. */
  #damage: unknown;

  /** To be made when the file is open: opening it for writing may make another one of it, in the layers of a container. */
  constructor(path: string) {
    const from = resolve(path);
    this.#room = new Room(from);
    // Where a link leads is noted once: the database of its path may become another one, which is told then.
    const beside = BESIDE.map((suffix): [string, string] => [suffix, besideDatabase(from, suffix)]);
    this.#paths = new Map([['', from], ...beside]);
    this.#note('', find(from));
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

  /** As {@link Room.check} does. */
  checkRoom(): Promise<void> {
    return this.#room.check();
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
    for (const [suffix, path] of this.#paths) {
      const found = find(path);
      const opened = this.#opened.get(suffix);
      if (opened === undefined && suffix !== '') this.#note(suffix, found);
      else if (found === undefined) return new LostFileError('has been removed', suffix);
      else if (found.ino !== opened?.ino || found.dev !== opened.dev) {
        return new LostFileError('has been replaced by another', suffix);
      }
    }
    return undefined;
  }

  #note(suffix: string, found: BigIntStats | undefined): void {
    if (found !== undefined) this.#opened.set(suffix, found);
  }
}

function find(path: string): BigIntStats | undefined {
  return statSync(path, { bigint: true, throwIfNoEntry: false });
}
