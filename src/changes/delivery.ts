import { setImmediate as nextTick } from 'node:timers/promises';
import type { Transaction } from 'kysely';
import type { Logger } from '../runtime/logging.ts';
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
import { isOutage } from '../sync/failure.ts';
import type { SendCompanyEvent } from './app-events.ts';

/** After so many dead letters in a row the list waits instead. */
const MOST_DEAD_IN_ROW = 10;

/** A record that ends the delivery process becomes a dead letter after so many tries at most. */
const MOST_ENDS = 5;

/** How the errors of such tries begin. */
export const PROCESS_ENDED = 'The handler ended the delivery process';

/** Pause of a delivery that an error of the app stopped, in milliseconds. */
const ERROR_PAUSE_MS = 2_000;

/** A suspect's call that an orderly end of the process broke off. It is no try. */
const STOPPED = { kind: 'handler', detail: '' } as const;

/** A delivery goes back to the queue after this time, in milliseconds: sooner while it keeps others waiting. */
const SLICE_MS = 5_000;
const ALONE_SLICE_MS = 1_000;

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

export interface Deliveries {
  /** @returns when the delivery goes on, in milliseconds since 1970; undefined when nothing is left */
  deliver(key: Lagging): Promise<number | undefined>;
  close(): Promise<void>;
  /** Where deliveries run, and what that process is at, in words for an operator. */
  readonly state: string;
}

export interface DeliveryContext {
  logger: Logger;
  /** Aborted when the process shuts down. */
  signal: AbortSignal;
  /** Pauses between the tries of a record, in milliseconds. After the last try it becomes a dead letter. */
  retryMs: readonly number[];
  /** Gets dead letters. */
  onEvent?: SendCompanyEvent | undefined;
  /** Called before each call of a consumer. */
  onCall?: (held: HeldConsumer, entries: readonly FeedEntry[]) => void;
}

/** How a delivery ended: when it goes on (milliseconds since 1970) if there is more, or that it must be alone. */
export type Delivered = { again: number | undefined } | { wasCharged: boolean };

/**
 * Gives a consumer the entries after its cursor, until none is left, it fails, or the time slice is over:
 *
 *     batch ── taken ──────────────────────────────── cursor moves
 *       └── failed ── record by record ── taken ───── cursor moves
 *                        └── failed ── pauses ── dead letter, cursor moves
 *                                        └── ten of these in a row: pauses without an end
 *
 * A *suspect* is a list whose last delivery never ended, as the process ended first. Its batch comes record by record,
 * in a delivery that is alone in its process, and each try is written before the call. So only the record that ends the
 * process is charged.
 *
 * @param alone whether nothing else is under way in this process
 */
export async function deliver(
  changes: ChangeStore,
  consumer: ChangeConsumer,
  key: Lagging,
  context: DeliveryContext,
  { alone = false, now = Date.now }: { alone?: boolean; now?: () => number } = {},
): Promise<Delivered> {
  const { whileActive } = consumer;
  const claimed = await changes.claim(key, { whileActive, alone, now: now() });
  if (claimed === undefined) return { again: undefined };
  if ('notBefore' in claimed) return { again: claimed.notBefore };
  if ('wasCharged' in claimed) return claimed;
  const delivery = new Delivery(changes, consumer, claimed, context, now);
  try {
    return { again: await delivery.run(alone ? ALONE_SLICE_MS : SLICE_MS) };
  } finally {
    // Without this mark's end the next delivery takes the list for a suspect, which is no harm.
    if (!delivery.isSuspect) await changes.end(claimed).catch(() => undefined);
  }
}

/** Delivers a list once. Errors of the app are logged, and cause a pause. */
export async function deliverList(
  changes: ChangeStore,
  consumers: readonly ChangeConsumer[],
  key: Lagging,
  context: DeliveryContext,
  alone: boolean,
): Promise<Delivered> {
  const { instanceId, resource } = key;
  // A fork that removes its handler leaves jobs behind.
  const consumer = consumers.find(({ name }) => name === key.consumer);
  if (consumer === undefined) return { again: undefined };
  const logger = context.logger.child({ instanceId, resource, consumer: consumer.name });
  return deliver(changes, consumer, key, { ...context, logger }, { alone }).catch((err) => {
    logger[isOutage(err) ? 'debug' : 'error']({ err }, 'the delivery stopped and is retried');
    return { again: Date.now() + ERROR_PAUSE_MS };
  });
}

/** Runs deliveries in this process, for tests that hand over a handler as a function. */
export function deliveriesHere(
  changes: ChangeStore,
  consumers: readonly ChangeConsumer[],
  context: Omit<DeliveryContext, 'signal'>,
): Deliveries {
  const stopping = new AbortController();
  const once = (key: Lagging, alone: boolean) =>
    deliverList(changes, consumers, key, { ...context, signal: stopping.signal }, alone);
  return {
    async deliver(key) {
      const delivered = await once(key, false);
      const ended = 'again' in delivered ? delivered : await once(key, true);
      return 'again' in ended ? ended.again : Date.now();
    },
    close: async () => stopping.abort(),
    state: 'in the worker',
  };
}

class Delivery {
  readonly #changes: ChangeStore;
  readonly #consumer: ChangeConsumer;
  readonly #context: DeliveryContext;
  readonly #now: () => number;
  /** Undefined when another delivery has the consumer, or somebody stopped it. */
  #held: HeldConsumer | undefined;
  /** The number of the last entry that comes alone. */
  #oneByOneUpTo = 0;
  /** Whether the process may still end by one of the entries that come alone. */
  isSuspect: boolean;

  constructor(
    changes: ChangeStore,
    consumer: ChangeConsumer,
    held: HeldConsumer,
    context: DeliveryContext,
    now: () => number,
  ) {
    this.#changes = changes;
    this.#consumer = consumer;
    this.#context = context;
    this.#now = now;
    this.#held = held;
    this.isSuspect = held.isSuspect;
  }

  /** @returns when to continue; undefined when nothing is left */
  async run(sliceMs: number): Promise<number | undefined> {
    const { signal } = this.#context;
    const startedAt = this.#now();
    if (this.#held?.isSuspect) {
      const { list, cursor, begun_to } = this.#held;
      const last = async () => (await this.#changes.read(list, cursor)).at(-1)?.seq ?? 0;
      this.#oneByOneUpTo = begun_to ?? (await last());
    }
    for (let held = this.#held; held !== undefined; held = this.#held) {
      const isOneByOne = held.cursor < this.#oneByOneUpTo;
      if (!isOneByOne) this.isSuspect = false;
      // A failed batch is given record by record to its end: the next job would try the whole batch again.
      const isOver = this.#now() - startedAt > sliceMs && (!isOneByOne || this.isSuspect);
      if (signal.aborted || isOver) return this.#now();
      const limit = isOneByOne || held.attempts > 0 ? 1 : BATCH_RECORDS;
      const entries = await this.#changes.read(held.list, held.cursor, limit);
      const [first] = entries;
      if (first === undefined) {
        this.isSuspect = false;
        return undefined;
      }
      const again = await this.#give(held, first, entries);
      if (again !== undefined) return again;
      await nextTick();
    }
    return undefined;
  }

  /** @returns when to continue, if the delivery has to wait */
  async #give(
    held: HeldConsumer,
    first: FeedEntry,
    entries: readonly FeedEntry[],
  ): Promise<number | undefined> {
    const { signal, onCall } = this.#context;
    const tries = held.tried_seq === first.seq ? held.attempts : 0;
    let current: HeldConsumer | undefined = held;
    try {
      if (this.isSuspect) current = await this.#charge(held, first, tries);
      if (current?.cursor !== held.cursor) return undefined;
      onCall?.(current, entries);
      const work = await this.#consumer.take(entries, current, this.#context);
      this.#held = await this.#changes.deliver(current, entries, this.#now(), work);
    } catch (error) {
      if (signal.aborted) {
        const undone = { tries, notBefore: this.#now() };
        if (this.isSuspect && current !== undefined)
          await this.#changes.fail(current, first, STOPPED, undone);
        return this.#now();
      }
      if (!(error instanceof ConsumerError)) throw error;
      // The consumer is not at fault if the database fails.
      if (error.cause instanceof StoreError && !(await this.#changes.isWell())) throw error.cause;
      // A pause or a disconnect may have made the call fail.
      if (current === undefined || !(await this.#changes.holds(current))) {
        this.#held = undefined;
        return undefined;
      }
      if (entries.length > 1 && error.waitMs === undefined) {
        this.#oneByOneUpTo = entries.at(-1)?.seq ?? 0;
        return undefined;
      }
      return this.#fail(current, first, error, tries);
    }
    const isOutageOver = held.failed_in_row > 0 && this.#held !== undefined;
    const isMore = isOutageOver && (await this.#changes.retryDue(held.list, held.consumer, this.#now()));
    return isMore ? this.#now() : undefined;
  }

  /** Writes a suspect's try before its call. @returns the consumer; behind the record if this was one try too many */
  async #charge(held: HeldConsumer, entry: FeedEntry, tries: number): Promise<HeldConsumer | undefined> {
    const { retryMs } = this.#context;
    const hasEnded = held.error_kind === 'handler_ended' && tries > 0;
    const isRetried = hasEnded && (await this.#changes.isRetried(held, entry));
    const most = isRetried ? 1 : Math.min(MOST_ENDS, retryMs.length + 1);
    const mayBury = isRetried || held.failed_in_row < MOST_DEAD_IN_ROW;
    // Without a reason nobody knows yet that the process ends.
    const detail = hasEnded ? (held.error_detail ?? '') : '';
    const now = this.#now();
    if (hasEnded && tries >= most && mayBury) {
      const times = `${tries} ${tries === 1 ? 'time' : 'times'}`;
      const error = new ConsumerError(`${detail || PROCESS_ENDED} (${times})`);
      this.#held = await this.#bury(held, entry, error, 'handler_ended', isRetried);
    } else {
      const notBefore = now + this.#pauseMs(tries + 1);
      const charged = { tries: tries + 1, notBefore, begunTo: this.#oneByOneUpTo };
      this.#held = await this.#changes.fail(held, entry, { kind: 'handler_ended', detail }, charged);
    }
    return this.#held;
  }

  /** @param before failed tries before this one */
  async #fail(
    held: HeldConsumer,
    entry: FeedEntry,
    error: ConsumerError,
    before: number,
  ): Promise<number | undefined> {
    const { logger, retryMs } = this.#context;
    const isWait = error.waitMs !== undefined;
    const tries = isWait ? before : before + 1;
    const isRetried = !isWait && (await this.#changes.isRetried(held, entry));
    const isLast = !isWait && tries > retryMs.length && held.failed_in_row < MOST_DEAD_IN_ROW;
    if (isRetried || isLast) {
      this.#held = await this.#bury(held, entry, error, 'handler', isRetried);
      return undefined;
    }
    const notBefore = this.#now() + (error.waitMs ?? this.#pauseMs(tries));
    logger.warn({ err: error, record: entry.id, tries }, 'the handler failed and is retried');
    const failure = { kind: 'handler', detail: error.message } as const;
    this.#held = await this.#changes.fail(held, entry, failure, { tries, notBefore });
    return this.#held && notBefore;
  }

  async #bury(
    held: HeldConsumer,
    entry: FeedEntry,
    error: ConsumerError,
    kind: 'handler' | 'handler_ended',
    isRetried: boolean,
  ): Promise<HeldConsumer | undefined> {
    const { logger, onEvent } = this.#context;
    const failure = { kind, detail: error.message };
    const moved = await this.#changes.bury(held, entry, failure, this.#now(), isRetried);
    if (moved === undefined || isRetried) return moved;
    const { instanceId, resource, company } = held;
    logger.warn({ err: error, company, record: entry.id }, 'a record became a dead letter');
    const letter = { resource, record: recordId(entry.id), error: failure.detail };
    onEvent?.(instanceId, { type: 'dead_letter', ...letter });
    return moved;
  }

  /** @param tries how often the record has failed, from 1 */
  #pauseMs(tries: number): number {
    const { retryMs } = this.#context;
    return retryMs[Math.min(tries, retryMs.length) - 1] ?? 0;
  }
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
