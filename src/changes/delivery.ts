import { setImmediate as othersTurn } from 'node:timers/promises';
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
import { recordId } from '../store/page-items.ts';
import type { RunError } from '../store/runs.ts';
import type { Schema } from '../store/schema.ts';
import type { TellEvent } from './app-events.ts';

/** Tries of a record before it becomes a dead letter; and dead letters in a row before the list waits instead. */
const MOST_TRIES = 5;
const MOST_DEAD_IN_ROW = 10;

/** Pauses between tries, in milliseconds. */
const PAUSES = { firstMs: 1_000, longestMs: 5 * 60_000 };

/** A job gives way to others after so long, in milliseconds. */
const SLICE_MS = 5_000;

/** A failure of a consumer, in words for an administrator. */
export class ConsumerError extends Error {
  override readonly name = 'ConsumerError';
  /** The service asked to wait for so long (milliseconds): that uses up no try. */
  readonly waitMs: number | undefined;

  constructor(message: string, { cause, waitMs }: { cause?: unknown; waitMs?: number | undefined } = {}) {
    super(message, { cause });
    this.waitMs = waitMs;
  }
}

/** A reader of change feeds, such as the integrator's handler. */
export interface ChangeConsumer {
  /** Names it in the database. */
  name: string;
  /** Whether it works for active instances alone. */
  whileActive: boolean;
  /**
   * Takes entries of a list.
   *
   * @returns what runs in the transaction that moves the cursor
   * @throws ConsumerError when it has failed; anything else is trouble of the app's own, and nobody's failure
   */
  take(
    entries: readonly FeedEntry[],
    held: HeldConsumer,
    context: DeliveryContext,
  ): Promise<((transaction: Transaction<Schema>) => Promise<void>) | undefined>;
}

/** One turn of a worker at one list. */
export interface DeliveryContext {
  logger: Logger;
  /** Aborted when the process ends. */
  signal: AbortSignal;
  /** Told of dead letters. */
  onEvent?: TellEvent | undefined;
}

/**
 * Hands the entries behind a consumer's cursor to it, until there are none, it fails, or the slice is over:
 *
 *     batch ── taken ──────────────────────────────── cursor moves
 *       └── failed ── record by record ── taken ───── cursor moves
 *                        └── failed ── pause, up to five tries ── dead letter, cursor moves
 *                                                  └── ten of these in a row: pauses without an end
 *
 * @returns when there is more to do, in milliseconds since 1970; undefined when there is nothing
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
    // A batch that failed is given record by record to its end: the next job would begin with the batch again.
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
      // A database in trouble is nobody's failure.
      if (error.cause instanceof StoreError && !(await changes.isWell())) throw error.cause;
      // A pause or a disconnect ends it, and may be what has failed the call.
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
    await othersTurn();
  }
  return undefined;
}

/** @returns when to try again; or the consumer, behind the dead letter; undefined when it is not held any more */
async function fail(
  changes: ChangeStore,
  held: HeldConsumer,
  entry: FeedEntry,
  error: ConsumerError,
  { logger, onEvent }: DeliveryContext,
  now: number,
): Promise<number | HeldConsumer | undefined> {
  const failure: RunError = { kind: 'handler', detail: error.message };
  const before = held.tried_seq === entry.seq ? held.attempts : 0;
  if (error.waitMs !== undefined) {
    const notBefore = now + error.waitMs;
    return (await changes.fail(held, entry, failure, { tries: before, notBefore })) ? notBefore : undefined;
  }
  const tries = before + 1;
  if (tries >= MOST_TRIES && held.failed_in_row < MOST_DEAD_IN_ROW) {
    const buried = await changes.bury(held, entry, failure, now);
    if (buried === undefined) return undefined;
    logger.warn({ err: error, record: entry.id }, 'a record became a dead letter');
    const { instanceId, resource } = held;
    onEvent?.(instanceId, {
      type: 'dead_letter',
      resource,
      record: recordId(entry.id),
      error: failure.detail,
    });
    return buried;
  }
  const notBefore = now + backoffMs(tries, Math.random(), PAUSES);
  logger.warn({ err: error, record: entry.id, tries }, 'the handler failed and is tried again');
  return (await changes.fail(held, entry, failure, { tries, notBefore })) ? notBefore : undefined;
}
