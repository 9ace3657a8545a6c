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

/** The integrator's handler, by this name in the database. */
export const HANDLER_CONSUMER = 'handler';

/** How long a handler's function may use the transaction, in milliseconds. */
const TRANSACTION_MS = 5_000;

/** How long a handler may take to heed the signal when the process ends, in milliseconds. */
const ENDING_MS = 2_000;

/** The longest that a call of the service waits, in milliseconds: many calls at once wait for many windows. */
const MOST_WAIT_MS = 10 * 60_000;

/** How much of a reason is kept, in UTF-16 units. */
const LONGEST_REASON = 1_000;

/** What calls of the handler are made with. */
export interface HandlerParts {
  handler: ChangeHandler;
  /** In milliseconds, without the waits of its calls of the service. */
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
      const time = new HandlerTime(parts.timeoutMs, context.signal);
      try {
        const { instanceId, companyId, resource } = held;
        const batch = { instanceId, companyId, resource, changes: entries.map(toChange) } as ChangeBatch;
        const call = async () => parts.handler(batch, contextOf(parts, held, context, time));
        const returned = await time.limit(call());
        return typeof returned === 'function' ? inTransaction(parts, returned) : undefined;
      } catch (error) {
        throw failureOf(error);
      } finally {
        time.end();
      }
    },
  };
}

function contextOf(
  parts: HandlerParts,
  held: HeldConsumer,
  { logger }: DeliveryContext,
  time: HandlerTime,
): HandlerContext {
  const { instanceId, companyId } = held;
  const company = companyId ?? instanceId;
  return {
    db: withoutTransactions(parts.db),
    logger,
    signal: time.signal,
    service: parts.serviceFor({
      instanceId,
      company,
      signal: time.signal,
      maxWaitMs: MOST_WAIT_MS,
      around: time.around,
      // A pause or a disconnect ends its calls, too.
      isWanted: () => parts.changes.holds(held),
    }),
  };
}

function toChange({ id, seq, change, document }: FeedEntry) {
  return {
    seq,
    id: recordId(id),
    change,
    document: document === null ? null : JSON.parse(document),
  };
}

function inTransaction(parts: HandlerParts, work: InTransaction) {
  return async (transaction: Transaction<Schema>) => {
    let isOver = false;
    // What it leaves running must not write behind the transaction.
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
      late.reject(new Error(`The function that the handler returned was not done after ${seconds} s.`));
    }, TRANSACTION_MS);
    try {
      await parts.db.dialect.limitStatements?.(transaction, TRANSACTION_MS);
      const guarded = transaction.withPlugin(guard) as unknown as Transaction<HandlerTables>;
      await Promise.race([work(guarded), late.promise]);
      // PostgreSQL ends a transaction with its first statement that fails, also where the function has caught that.
      await transaction.selectNoFrom((eb) => eb.lit(1).as('one')).execute();
    } catch (error) {
      throw failureOf(error);
    } finally {
      clearTimeout(timer);
      isOver = true;
    }
  };
}

/** The database for a handler, which may hang: a transaction of its own would keep the connection. */
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

/** Anything can be thrown: only its words are kept. */
function failureOf(cause: unknown): ConsumerError {
  const words = cause instanceof Error ? cause.message : String(cause);
  const waitMs = cause instanceof ServiceError && cause.remedy === 'wait' ? cause.retryAfterMs : undefined;
  return new ConsumerError(redact(words).slice(0, LONGEST_REASON), { cause, waitMs });
}

/** The time of one call. It stands still while a call of the service is under way, which has an end of its own. */
class HandlerTime {
  readonly #limitMs: number;
  readonly #ending = new AbortController();
  readonly #over = Promise.withResolvers<never>();
  readonly #shutdown: AbortSignal;
  #timer: NodeJS.Timeout | undefined;
  #endingTimer: NodeJS.Timeout | undefined;
  #leftMs: number;
  #since = 0;
  #calls = 0;

  constructor(limitMs: number, shutdown: AbortSignal) {
    this.#limitMs = limitMs;
    this.#leftMs = limitMs;
    this.#shutdown = shutdown;
    shutdown.addEventListener('abort', this.#shutDown);
    this.#over.promise.catch(() => undefined);
    this.#goOn();
  }

  get signal(): AbortSignal {
    return this.#ending.signal;
  }

  limit<T>(work: Promise<T>): Promise<T> {
    return Promise.race([work, this.#over.promise]);
  }

  /** Sees a call of the service through. */
  readonly around = async <Answer>(call: () => Promise<Answer>): Promise<Answer> => {
    if (this.#calls++ === 0) this.#stand();
    try {
      return await call();
    } finally {
      if (--this.#calls === 0) this.#goOn();
    }
  };

  end(): void {
    clearTimeout(this.#timer);
    clearTimeout(this.#endingTimer);
    this.#shutdown.removeEventListener('abort', this.#shutDown);
    this.#ending.abort();
  }

  #goOn(): void {
    this.#since = performance.now();
    if (this.#ending.signal.aborted) return;
    this.#timer = setTimeout(() => {
      this.#fail(new Error(`It was not done after ${this.#limitMs / 1_000} s (HANDLER_TIMEOUT_SECONDS).`));
    }, this.#leftMs);
  }

  #stand(): void {
    clearTimeout(this.#timer);
    this.#leftMs = Math.max(0, this.#leftMs - (performance.now() - this.#since));
  }

  #fail(error: unknown): void {
    this.#over.reject(error);
    this.#ending.abort(error);
  }

  readonly #shutDown = (): void => {
    const { reason } = this.#shutdown;
    this.#ending.abort(reason);
    this.#endingTimer = setTimeout(() => this.#over.reject(reason), ENDING_MS);
  };
}
