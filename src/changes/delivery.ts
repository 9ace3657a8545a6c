import { setImmediate as nextTick } from 'node:timers/promises';
import type { Transaction } from 'kysely';
import type { Logger } from '../runtime/logging.ts';
import { backoffMs } from '../service/backoff.ts';
import {
  BATCH_RECORDS,
  type ChangeStore,
  type FeedEntry,
  type HeldConsumer,
  type Lagging,
} from '../store/changes.ts';
import { StoreError } from '../store/database.ts';
import { idJson, oneLine, recordId } from '../store/page-items.ts';
import type { Schema } from '../store/schema.ts';
import type { SendCompanyEvent } from './app-events.ts';

/** A record becomes a dead letter after so many tries. After so many dead letters in a row the list waits instead. */
const MOST_TRIES = 5;
const MOST_DEAD_IN_ROW = 10;

/** Pauses between tries, in milliseconds. */
const PAUSES = { firstMs: 1_000, longestMs: 5 * 60_000 };

/** A delivery goes back to the queue after this time, in milliseconds. */
const SLICE_MS = 5_000;

/** A consumer's failure, in words for an administrator. */
export class ConsumerError extends Error {
  override readonly name = 'ConsumerError';
  /** The service asked to wait this long, in milliseconds. Such a try does not count. */
  readonly waitMs: number | undefined;

  constructor(message: string, { cause, waitMs }: { cause?: unknown; waitMs?: number | undefined } = {}) {
    super(message, { cause });
    this.waitMs = waitMs;
  }
}

/** A reader of change feeds, such as the integrator's handler. */
export interface ChangeConsumer {
  /** Its name in the database. */
  name: string;
  /** Whether it reads only unpaused lists of active instances. */
  whileActive: boolean;
  /**
   * @returns work for the transaction that moves the cursor, if there is any
   * @throws ConsumerError if the consumer failed; any other error is the app's own and costs no try
   */
  take(
    entries: readonly FeedEntry[],
    held: HeldConsumer,
    context: DeliveryContext,
  ): Promise<((transaction: Transaction<Schema>) => Promise<void>) | undefined>;
}

/** The surroundings of a delivery. */
export interface DeliveryContext {
  logger: Logger;
  /** Aborted when the process shuts down. */
  signal: AbortSignal;
  /** Gets dead letters. */
  onEvent?: SendCompanyEvent | undefined;
}

/**
 * Gives a consumer the entries after its cursor, until none is left, it fails, or the time slice is over:
 *
 *     batch ── taken ──────────────────────────────── cursor moves
 *       └── failed ── record by record ── taken ───── cursor moves
 *                        └── failed ── pause, up to five tries ── dead letter, cursor moves
 *                                                  └── ten of these in a row: pauses without an end
 *
 * @returns when to continue, in milliseconds since 1970; undefined when nothing is left
 */
export async function deliver(
  changes: ChangeStore,
  consumer: ChangeConsumer,
  key: Lagging,
  context: DeliveryContext,
  now: () => number = Date.now,
): Promise<number | undefined> {
  const startedAt = now();
  let held = await changes.claim(key, consumer);
  if (held?.not_before != null && held.not_before > now()) return held.not_before;
  let oneByOneUpTo = 0;
  while (held !== undefined) {
    // A failed batch is given record by record to its end: the next job would try the whole batch again.
    const isOver = now() - startedAt > SLICE_MS && held.cursor >= oneByOneUpTo;
    if (context.signal.aborted || isOver) return now();
    const current: HeldConsumer = held;
    const limit: number = held.cursor < oneByOneUpTo || held.attempts > 0 ? 1 : BATCH_RECORDS;
    const entries: FeedEntry[] = await changes.read(held.list, held.cursor, limit);
    const [first] = entries;
    if (first === undefined) return undefined;
    try {
      const work = await consumer.take(entries, held, context);
      held = await changes.deliver(held, entries, work);
    } catch (error) {
      if (context.signal.aborted) return now();
      if (!(error instanceof ConsumerError)) throw error;
      // The consumer is not at fault if the database fails.
      if (error.cause instanceof StoreError && !(await changes.isWell())) throw error.cause;
      // A pause or a disconnect may have made the call fail.
      if (!(await changes.holds(current))) return undefined;
      if (entries.length > 1) {
        oneByOneUpTo = entries.at(-1)?.seq ?? 0;
        continue;
      }
      const failed: number | HeldConsumer | undefined = await fail(
        changes,
        current,
        first,
        error,
        context,
        now(),
      );
      if (typeof failed === 'number') return failed;
      held = failed;
    }
    await nextTick();
  }
  return undefined;
}

/** @returns when to retry; or the consumer after a dead letter; undefined when another worker holds it */
async function fail(
  changes: ChangeStore,
  held: HeldConsumer,
  entry: FeedEntry,
  error: ConsumerError,
  { logger, onEvent }: DeliveryContext,
  now: number,
): Promise<number | HeldConsumer | undefined> {
  const failure = { kind: 'handler', detail: error.message } as const;
  const before = held.tried_seq === entry.seq ? held.attempts : 0;
  const tries = error.waitMs === undefined ? before + 1 : before;
  if (error.waitMs === undefined && tries >= MOST_TRIES && held.failed_in_row < MOST_DEAD_IN_ROW) {
    const moved = await changes.bury(held, entry, failure, now);
    if (moved === undefined) return undefined;
    logger.warn({ err: error, record: entry.id }, 'a record became a dead letter');
    const { instanceId, resource } = held;
    const letter = { resource, record: recordId(entry.id), error: failure.detail };
    onEvent?.(instanceId, { type: 'dead_letter', ...letter });
    return moved;
  }
  const notBefore = now + (error.waitMs ?? backoffMs(tries, Math.random(), PAUSES));
  logger.warn({ err: error, record: entry.id, tries }, 'the handler failed and is retried');
  return (await changes.fail(held, entry, failure, { tries, notBefore })) ? notBefore : undefined;
}

/**
 * A list's change feed as lines of JSON, for a program outside.
 *
 * @param after the feed begins after this number; 0 gives the whole copy
 * @param limit lines at most
 */
export async function* feedLines(
  changes: Pick<ChangeStore, 'read'>,
  list: number,
  { after, limit }: { after: number; limit: number },
): AsyncGenerator<string> {
  for (let cursor = after, left = limit; left > 0; ) {
    const entries = await changes.read(list, cursor, left);
    const last = entries.at(-1);
    if (last === undefined) return;
    for (const { seq, change, id, document } of entries) {
      const text = document === null ? null : oneLine(document);
      yield `{"seq":${seq},"change":"${change}","id":${idJson(id)},"document":${text}}`;
    }
    cursor = last.seq;
    left -= entries.length;
  }
}
