import type { Database } from './database.ts';
import { documentHash } from './document-hash.ts';
import type { UnusableItem } from './page-items.ts';
import { LIST_OF, type RunKey } from './runs.ts';

/** So many different items of a list are kept for a look; of all others only the number is known. */
const MOST_KEPT = 100;

/** How much of an item's text is kept, in UTF-16 units. */
const EXCERPT_LENGTH = 500;

/** So much behind it is looked at, too: a secret that the cut splits is found by what of it stands there. */
const BEHIND_EXCERPT = 256;

/** When the run of a list began, which is bound in its place. */
const START_OF = 'coalesce((select started_at from runs where list = ?), 0)';

/** Something in a list that the copy cannot keep, for people to look at. */
export interface QuarantinedItem {
  reason: string;
  /** How its text begins, without secrets. */
  excerpt: string;
  /** How long its text is, in UTF-16 units. */
  length: number;
  /**
   * When a run met it first and last, in milliseconds since 1970: never before the start of the run that met it last, also
   * if the clock was set back meanwhile.
   */
  first_seen_at: number;
  seen_at: number;
}

/** The table of what the copy cannot keep: a bounded number of a list, and the beginning of each. */
export class QuarantineStore {
  readonly #db: Database;
  readonly #statements: ReturnType<typeof prepare>;
  readonly #hideSecrets: (text: string) => string;

  /** @param hideSecrets leaves secrets out of what is kept */
  constructor(db: Database, hideSecrets = (text: string) => text) {
    this.#db = db;
    this.#statements = prepare(db);
    this.#hideSecrets = hideSecrets;
  }

  /** Keeps items, or notes that they were met again; within the transaction that writes their page. */
  keepNow(list: number, items: readonly UnusableItem[], now: number): void {
    const { again, count, keep } = this.#statements;
    let room = MOST_KEPT - (count.get(list)?.count ?? 0);
    for (const { text, reason } of items) {
      const hash = documentHash(text);
      if (again.run(now, list, list, hash).changes > 0 || room <= 0) continue;
      const isCut = text.length > EXCERPT_LENGTH + BEHIND_EXCERPT;
      const hidden = this.#hideSecrets(text.slice(0, EXCERPT_LENGTH + BEHIND_EXCERPT));
      const end = isCut ? Math.max(0, hidden.length - BEHIND_EXCERPT) : hidden.length;
      const excerpt = hidden.slice(0, Math.min(end, EXCERPT_LENGTH)).toWellFormed();
      keep.run(list, hash, reason, excerpt, text.length, now, now, list);
      room--;
    }
  }

  /** Forgets what a run that went from the first page to the last has not met. @param before when that run began */
  async forgetUnseen({ instanceId, resource }: RunKey, before: number): Promise<void> {
    const { isAny, forget } = this.#statements;
    const hasSome = await this.#db.atOnce(() => isAny.get(instanceId, resource, before) !== undefined);
    // Most lists have none: they wait for no write.
    if (hasSome) await this.#db.writeAtOnce(() => forget.run(instanceId, resource, before));
  }

  /** How many items of a list are kept. */
  count({ instanceId, resource }: RunKey): Promise<number> {
    return this.#db.atOnce(() => this.#statements.countOf.get(instanceId, resource)?.count ?? 0);
  }

  /** Items of a list, always in the same order. */
  list({ instanceId, resource }: RunKey, limit: number): Promise<QuarantinedItem[]> {
    return this.#db.atOnce(() => this.#statements.some.all(instanceId, resource, limit));
  }
}

function prepare(db: Database) {
  return {
    again: db.prepare<[now: number, list: number, list: number, hash: string]>(
      `update quarantine set seen_at = max(?, ${START_OF}) where list = ? and hash = ?`,
    ),
    count: db.prepare<[list: number], { count: number }>(
      'select count(*) as count from quarantine where list = ?',
    ),
    keep: db.prepare<[number, string, string, string, number, number, number, number]>(`
      insert into quarantine (list, hash, reason, excerpt, length, first_seen_at, seen_at)
      values (?, ?, ?, ?, ?, ?, max(?, ${START_OF}))`),
    isAny: db.prepare<[string, string, before: number]>(
      `select 1 from quarantine where list = ${LIST_OF} and seen_at < ? limit 1`,
    ),
    forget: db.prepare<[string, string, before: number]>(
      `delete from quarantine where list = ${LIST_OF} and seen_at < ?`,
    ),
    countOf: db.prepare<[string, string], { count: number }>(
      `select count(*) as count from quarantine where list = ${LIST_OF}`,
    ),
    some: db.prepare<[string, string, limit: number], QuarantinedItem>(`
      select reason, excerpt, length, first_seen_at, seen_at from quarantine where list = ${LIST_OF}
      order by hash limit ?`),
  };
}
