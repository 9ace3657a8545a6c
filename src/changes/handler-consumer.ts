import type { Kysely, KyselyPlugin, Transaction } from 'kysely';
import type { HandlerTables } from '../integration/schema.ts';
import { redact } from '../runtime/redaction.ts';
import type { ServiceClient } from '../service/calls.ts';
import { ServiceError } from '../service/errors.ts';
import type { ClientFor } from '../service/service-client.ts';
import type { ChangeStore, FeedEntry, HeldConsumer } from '../store/changes.ts';
import type { Database } from '../store/database.ts';
import { recordId } from '../store/page-items.ts';
import type { Schema } from '../store/schema.ts';
import type { ChangeBatch, ChangeHandler, HandlerContext, InTransaction } from './change-handler.ts';
import { type ChangeConsumer, ConsumerError, type DeliveryContext } from './delivery.ts';

/** The handler's name in the database. */
export const HANDLER_CONSUMER = 'handler';

/** The function that a handler returns may use the transaction this long, in milliseconds. */
const TRANSACTION_MS = 5_000;

/** A call of the service waits at most this long for the limit, in milliseconds. */
const LONGEST_WAIT_MS = 10 * 60_000;

/** An error message is cut after so many UTF-16 units. */
const LONGEST_REASON = 1_000;

/** How long a handler may ignore the signal when the process ends. */
const ENDING_MS = 2_000;

/** The parts of the app that the handler needs. */
export interface HandlerParts {
  handler: ChangeHandler;
  /** Time of one call in milliseconds, without its calls of the service. */
  timeoutMs: number;
  changes: ChangeStore;
  db: Database;
  serviceFor(whose: ClientFor): ServiceClient;
}

/** The consumer that calls the integrator's handler. */
export function handlerConsumer(parts: HandlerParts): ChangeConsumer {
  return {
    name: HANDLER_CONSUMER,
    whileActive: true,
    async take(entries, held, context) {
      const timer = new HandlerTimer(parts.timeoutMs, context.signal);
      try {
        const { instanceId, companyId, resource } = held;
        const batch = { instanceId, companyId, resource, changes: entries.map(toChange) } as ChangeBatch;
        const call = async () => parts.handler(batch, contextOf(parts, held, context, timer));
        const returned = await Promise.race([call(), timer.late]);
        return typeof returned === 'function' ? inTransaction(parts, returned) : undefined;
      } catch (error) {
        throw failureOf(error);
      } finally {
        timer.end();
      }
    },
  };
}

function contextOf(
  { db, changes, serviceFor }: HandlerParts,
  held: HeldConsumer,
  { logger }: DeliveryContext,
  { signal, around }: HandlerTimer,
): HandlerContext {
  const { instanceId, companyId } = held;
  // A pause or a disconnect stops the calls, too.
  const isWanted = () => changes.holds(held);
  const company = companyId ?? instanceId;
  const whose = { instanceId, company, signal, maxWaitMs: LONGEST_WAIT_MS, around, isWanted };
  return { db: withoutTransactions(db), logger, signal, service: serviceFor(whose) };
}

function toChange({ id, seq, change, document }: FeedEntry) {
  return { seq, id: recordId(id), change, document: document === null ? null : JSON.parse(document) };
}

function inTransaction({ db }: HandlerParts, work: InTransaction) {
  return async (transaction: Transaction<Schema>) => {
    let isOver = false;
    // A statement that comes late must not run after the transaction.
    const guard: KyselyPlugin = {
      transformQuery({ node }) {
        if (isOver) throw new Error('The transaction is over.');
        return node;
      },
      transformResult: async ({ result }) => result,
    };
    const late = Promise.withResolvers<never>();
    const timer = setTimeout(() => {
      const seconds = TRANSACTION_MS / 1_000;
      late.reject(new Error(`The function that the handler returned took more than ${seconds} s.`));
    }, TRANSACTION_MS);
    try {
      await db.dialect.limitStatements?.(transaction, TRANSACTION_MS);
      const guarded = transaction.withPlugin(guard) as unknown as Transaction<HandlerTables>;
      await Promise.race([work(guarded), late.promise]);
      // PostgreSQL aborts a transaction at its first failed statement, even if the function caught the error.
      await transaction.selectNoFrom((eb) => eb.lit(1).as('one')).execute();
    } catch (error) {
      throw failureOf(error);
    } finally {
      clearTimeout(timer);
      isOver = true;
    }
  };
}

/** A handler that hangs in a transaction of its own would keep the connection, and SQLite has one. */
function withoutTransactions(db: Database): HandlerContext['db'] {
  const refused: readonly unknown[] = ['transaction', 'startTransaction', 'connection', 'destroy'];
  return new Proxy(db as unknown as Kysely<HandlerTables>, {
    get(target, name) {
      if (refused.includes(name)) {
        throw new Error(`context.db has no ${String(name)}: return a function, which runs in a transaction.`);
      }
      const value: unknown = Reflect.get(target, name);
      return typeof value === 'function' ? value.bind(target) : value;
    },
  });
}

/** A handler may throw anything: the app keeps the words. */
function failureOf(cause: unknown): ConsumerError {
  const words = cause instanceof Error ? cause.message : String(cause);
  const waitMs = cause instanceof ServiceError && cause.remedy === 'wait' ? cause.retryAfterMs : undefined;
  return new ConsumerError(redact(words).slice(0, LONGEST_REASON), { cause, waitMs });
}

/** Limits the time of one call. The timer stands still during calls of the service, which have a limit of their own. */
class HandlerTimer {
  /** Aborted when the call is over or the process shuts down. */
  readonly signal: AbortSignal;
  readonly #limitMs: number;
  readonly #over = new AbortController();
  readonly #late = Promise.withResolvers<never>();
  #timer: NodeJS.Timeout | undefined;
  #leftMs: number;
  #startedAt = 0;
  #calls = 0;

  constructor(limitMs: number, shutdown: AbortSignal) {
    this.#limitMs = limitMs;
    this.#leftMs = limitMs;
    this.signal = AbortSignal.any([shutdown, this.#over.signal]);
    this.#late.promise.catch(() => undefined);
    const giveUp = () => setTimeout(() => this.#late.reject(shutdown.reason), ENDING_MS).unref();
    shutdown.addEventListener('abort', giveUp, { signal: this.#over.signal });
    this.#start();
  }

  /** Rejects when the time is over. */
  get late(): Promise<never> {
    return this.#late.promise;
  }

  /** Stops the timer during a call of the service. */
  readonly around = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    if (this.#calls++ === 0) {
      clearTimeout(this.#timer);
      this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#startedAt));
    }
    try {
      return await call();
    } finally {
      if (--this.#calls === 0) this.#start();
    }
  };

  end(): void {
    clearTimeout(this.#timer);
    this.#over.abort();
  }

  #start(): void {
    if (this.#over.signal.aborted) return;
    this.#startedAt = performance.now();
    this.#timer = setTimeout(() => {
      const seconds = this.#limitMs / 1_000;
      const error = new Error(`The handler took more than ${seconds} s (HANDLER_TIMEOUT_SECONDS).`);
      this.#late.reject(error);
      this.#over.abort(error);
    }, this.#leftMs);
  }
}
