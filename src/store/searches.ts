import { Worker } from 'node:worker_threads';
import Sqlite from 'better-sqlite3';
import type { Database } from './database.ts';
import { SearchRefusedError } from './record-types.ts';
import type { FoundRecords, WantedSearch } from './search.ts';
import { END, type SearchAnswer } from './search-thread-messages.ts';

/** So many searches of an instance are under way at a time, with those that wait for their turn. */
const MOST_OF_INSTANCE = 8;

/** So long a search may take with its turn, in milliseconds: nobody waits longer for a page. */
const MOST_MS = 10_000;

/** How the thread is called among those of the process; 15 letters at most. */
const SEARCH_THREAD = 'search';

/** What it reads is soon forgotten: see the thread of the index. */
const YOUNG_MEMORY_MB = 4;

const ENDED = 'The thread of the searches has ended.';

interface Asked {
  wanted: WantedSearch;
  resolve: (found: FoundRecords) => void;
  reject: (error: unknown) => void;
}

/**
 * The searches of a process, one after the other, in a thread and with a connection of their own: SQLite cannot stop one,
 * and words that are in most of a million records take it half a second, which nobody but other searches is to wait for.
 * Instances take turns, and each has a bounded number. The thread begins with the first search.
 */
export class Searches {
  readonly #db: Database;
  readonly #mostMs: number;
  /** By instance: whose turn is next comes first. */
  readonly #waiting = new Map<string, Asked[]>();
  #thread: Worker | undefined;
  /** What the thread works on, also when nobody waits for it any more. */
  #current: Asked | undefined;

  /** @param mostMs instead of ten seconds */
  constructor(db: Database, mostMs = MOST_MS) {
    this.#db = db;
    this.#mostMs = mostMs;
  }

  /**
   * Looks for what was typed.
   *
   * @throws SearchRefusedError when too many are under way, or it takes too long
   */
  async find(wanted: WantedSearch): Promise<FoundRecords> {
    const { instanceId } = wanted;
    const waiting = this.#waiting.get(instanceId) ?? [];
    const running = this.#current?.wanted.instanceId === instanceId ? 1 : 0;
    if (waiting.length + running >= MOST_OF_INSTANCE)
      throw new SearchRefusedError(
        'too_many',
        `${MOST_OF_INSTANCE} searches of this company are under way already.`,
      );
    const { promise, resolve, reject } = Promise.withResolvers<FoundRecords>();
    const asked = { wanted, resolve, reject };
    this.#waiting.set(instanceId, [...waiting, asked]);
    // It keeps the process going as well, which the thread does not.
    const timer = setTimeout(() => {
      this.#leave(asked);
      reject(new SearchRefusedError('too_long', `It was not done after ${MOST_MS / 1_000} seconds.`));
    }, this.#mostMs);
    this.#next();
    return promise.finally(() => clearTimeout(timer));
  }

  /**
   * Ends the thread, and whatever waits for it; what SQLite is about, it ends first. The thread closes its database itself:
   * a thread that is terminated around an open one may take its process along.
   */
  async close(): Promise<void> {
    const waiting = [...this.#waiting.values()].flat();
    this.#waiting.clear();
    for (const { reject } of waiting) reject(new Error(ENDED));
    this.#done(({ reject }) => reject(new Error(ENDED)));
    const thread = this.#thread;
    if (thread === undefined) return;
    const ended = new Promise((resolve) => void thread.once('exit', resolve));
    thread.ref();
    thread.postMessage(END);
    await ended;
  }

  #leave(asked: Asked): void {
    const { instanceId } = asked.wanted;
    const others = this.#waiting.get(instanceId)?.filter((other) => other !== asked) ?? [];
    if (others.length > 0) this.#waiting.set(instanceId, others);
    else this.#waiting.delete(instanceId);
  }

  #next(): void {
    const [asked] = this.#waiting.values().next().value ?? [];
    if (this.#current !== undefined || asked === undefined) return;
    const { instanceId } = asked.wanted;
    this.#leave(asked);
    const others = this.#waiting.get(instanceId);
    // Behind all others.
    if (others !== undefined && this.#waiting.delete(instanceId)) this.#waiting.set(instanceId, others);
    this.#current = asked;
    try {
      this.#thread ??= this.#start();
      this.#thread.postMessage(asked.wanted);
    } catch (error) {
      // The machine has no room for a further thread just now.
      this.#done(({ reject }) => reject(error));
    }
  }

  #done(settle: (asked: Asked) => void): void {
    const asked = this.#current;
    this.#current = undefined;
    if (asked !== undefined) settle(asked);
    this.#next();
  }

  #start(): Worker {
    // Without what the process was started with: that is for its entry point.
    const thread = new Worker(new URL('./search-thread.ts', import.meta.url), {
      name: SEARCH_THREAD,
      workerData: { databaseUrl: this.#db.url },
      execArgv: [],
      resourceLimits: { maxYoungGenerationSizeMb: YOUNG_MEMORY_MB },
    });
    thread.on('message', (answer: SearchAnswer) =>
      this.#done(({ resolve, reject }) =>
        'found' in answer ? resolve(answer.found) : reject(this.#explained(answer)),
      ),
    );
    let reason: unknown = new Error(ENDED);
    thread.on('error', (error) => {
      reason = error;
    });
    // The next search begins another one.
    thread.on('exit', () => {
      this.#thread = undefined;
      this.#done(({ reject }) => reject(reason));
    });
    thread.unref();
    return thread;
  }

  #explained({ message, code }: { message: string; code: string }): unknown {
    return this.#db.explain(new Sqlite.SqliteError(message, code));
  }
}
